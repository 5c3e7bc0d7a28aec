//go:build linux

// Command workload is the one program in the image of the tests. Without
// arguments it only waits, as a Pod's sandbox does; with an address it does to
// files what it is asked to over HTTP, as the container's own process. So a test
// sees what the kernel answers inside the container, and needs no shell there.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM, unix.SIGINT)
	if len(os.Args) > 1 {
		server := &http.Server{Addr: os.Args[1], Handler: http.HandlerFunc(handle), ReadHeaderTimeout: time.Minute}
		go func() {
			fmt.Fprintln(os.Stderr, "workload:", server.ListenAndServe())
			os.Exit(1)
		}()
	}
	<-end
}

// handle does /<operation>?path=…: what it gives is the body, and the name of
// the kernel's error number, such as EROFS, if it may not be.
func handle(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = do(r.URL.Path, path, body)
	}
	var number unix.Errno
	switch {
	case err == nil:
		_, _ = w.Write(body)
	case errors.As(err, &number):
		http.Error(w, unix.ErrnoName(number), http.StatusConflict)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func do(operation, path string, body []byte) ([]byte, error) {
	switch operation {
	case "/read":
		return os.ReadFile(path)
	case "/write":
		return nil, os.WriteFile(path, body, 0o644)
	case "/append":
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		_, err = file.Write(body)
		return nil, errors.Join(err, file.Close())
	case "/remove":
		return nil, os.Remove(path)
	case "/mkdir":
		return nil, os.Mkdir(path, 0o755)
	case "/chmod":
		return nil, os.Chmod(path, 0o777)
	case "/remount": // what only a privileged process may try
		return nil, unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT, "")
	default:
		return nil, fmt.Errorf("no such operation: %s", operation)
	}
}
