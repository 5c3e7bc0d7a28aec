# The controller's image: one static binary and nothing else, no shell, no
# packages, no user database. `make image` builds the binary and runs this with
# bin/image as context.
FROM scratch
COPY mooring-controller /mooring-controller
USER 65532:65532
ENTRYPOINT ["/mooring-controller"]
