{{/*
The name of what lives in the release's namespace: the release's name, followed
by "-mooring" unless it is that already. Two releases never share one.
*/}}
{{- define "mooring.name" -}}
{{- if eq .Release.Name "mooring" -}}
mooring
{{- else -}}
{{ .Release.Name }}-mooring
{{- end -}}
{{- end -}}

{{/*
The name of what the whole cluster shares. RBAC names may hold colons, and
neither namespaces nor releases can, so no two releases share one.
*/}}
{{- define "mooring.clusterName" -}}
mooring:{{ .Release.Namespace }}:{{ .Release.Name }}
{{- end -}}

{{/*
The lease that the Pods elect their leader by: named as the controller names it.
*/}}
{{- define "mooring.lease" -}}
{{ .Release.Name }}.{{ .Values.provisionerName }}
{{- end -}}

{{/*
The ConfigMap that records a stop of deletions.
*/}}
{{- define "mooring.brake" -}}
{{ include "mooring.name" . }}-brake
{{- end -}}

{{/*
The account of the cleanup, and what the whole cluster shares of it.
*/}}
{{- define "mooring.cleanupName" -}}
{{ include "mooring.name" . }}-cleanup
{{- end -}}

{{- define "mooring.cleanupClusterName" -}}
{{ include "mooring.clusterName" . }}:cleanup
{{- end -}}

{{/*
What makes a template part of the uninstallation; its argument is the order.
What is left of a run that failed shows why, and makes room for the next.
*/}}
{{- define "mooring.cleanupHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/*
Whether the controller may delete mirror claims: "true" or empty.
*/}}
{{- define "mooring.deletesClaims" -}}
{{- $deletes := .Values.allowClaimDeletion -}}
{{- range (include "mooring.classes" . | fromJson).classes -}}
{{- if eq .onRevoke "Delete" }}{{ $deletes = true }}{{ end -}}
{{- end -}}
{{- if $deletes -}}
true
{{- end -}}
{{- end -}}

{{/*
The classes that the chart makes, each with all it has, as JSON of {"classes": []}.
*/}}
{{- define "mooring.classes" -}}
{{- $classes := list -}}
{{- if .Values.class.create -}}
{{- $classes = append $classes (pick .Values.class "name" "access" "onRevoke" "revokeAfter") -}}
{{- end -}}
{{- range .Values.classes -}}
{{- $classes = append $classes (dict "name" .name "access" (.access | default "ReadWrite") "onRevoke" (.onRevoke | default "Report") "revokeAfter" (.revokeAfter | default "5m")) -}}
{{- end -}}
{{- $names := list -}}
{{- range $classes -}}
{{- if has .name $names -}}
{{- fail (printf "classes: %q stands there twice, or is class.name too: give each class a name of its own" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- dict "classes" $classes | toJson -}}
{{- end -}}

{{/*
What all Pods of the chart have in common.
*/}}
{{- define "mooring.podBasics" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
# The environment would grow with every Service of the namespace.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- with .Values.podSecurity.runAsUser }}
  runAsUser: {{ int64 . }}
  {{- end }}
  {{- with .Values.podSecurity.runAsGroup }}
  runAsGroup: {{ int64 . }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "mooring.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "mooring.containerBasics" -}}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/*
The labels by which the Pods are found. They never change in a release's life.
*/}}
{{- define "mooring.selectorLabels" -}}
app.kubernetes.io/name: mooring
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mooring.labels" -}}
{{ include "mooring.selectorLabels" . }}
{{ include "mooring.releaseLabels" . }}
{{- end -}}

{{- define "mooring.releaseLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "mooring.image" -}}
{{- $repository := required "image.repository is not set, and there is no default: build the controller's image with `make image IMAGE=<registry>/<repository>:<tag>`, push it to a registry of yours, and set image.repository (and image.tag or image.digest) to it" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/*
The name of an admission policy, which the whole cluster shares: neither purposes
nor namespaces can hold a dot, so no two releases share one.
*/}}
{{- define "mooring.policyName" -}}
{{ .purpose }}.{{ .root.Release.Name }}.{{ .root.Release.Namespace }}
{{- end -}}

{{/*
The users that the controller and the cleanup are.
*/}}
{{- define "mooring.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "mooring.name" . }}
{{- end -}}

{{- define "mooring.cleanupUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "mooring.cleanupName" . }}
{{- end -}}

{{/*
A list of text as CEL has it.
*/}}
{{- define "mooring.celList" -}}
[{{ range $i, $text := . }}{{ if $i }}, {{ end }}{{ $text | quote }}{{ end }}]
{{- end -}}

{{/*
A CEL expression that says whether a class, by its name, is one of Mooring's.
*/}}
{{- define "mooring.celIsOurClass" -}}
{{- $names := list -}}
{{- range (include "mooring.classes" .root | fromJson).classes }}{{ $names = append $names .name }}{{ end -}}
{{- $prefixes := list -}}
{{- range .root.Values.extraClassNames -}}
{{- if hasSuffix "*" . }}{{ $prefixes = append $prefixes (trimSuffix "*" .) }}{{ else }}{{ $names = append $names . }}{{ end -}}
{{- end -}}
({{ .class }} in {{ include "mooring.celList" $names }}
{{- range $prefixes }} || {{ $.class }}.startsWith({{ . | quote }}){{ end }})
{{- end -}}

{{/*
A CEL expression that says whether a claim is a mirror: by its class, or by the
annotation that names an origin.
*/}}
{{- define "mooring.celIsMirror" -}}
(has({{ .claim }}.spec.storageClassName) && {{ include "mooring.celIsOurClass" (dict "root" .root "class" (printf "%s.spec.storageClassName" .claim)) }}
 || has({{ .claim }}.metadata.annotations) && {{ printf "%s/origin" .root.Values.provisionerName | quote }} in {{ .claim }}.metadata.annotations)
{{- end -}}

{{/*
Who an admission policy does not concern: Mooring itself, and administrators and
restore tools by their groups.
*/}}
{{- define "mooring.policyExemptions" -}}
{{ include "mooring.celIsNotMooring" . }}
- name: is-not-exempt
  expression: >-
    !(has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in {{ include "mooring.celList" .Values.policies.exemptGroups }}))
{{- end -}}

{{- define "mooring.celIsNotMooring" -}}
- name: is-not-mooring
  expression: >-
    !(request.userInfo.username in {{ include "mooring.celList" (list (include "mooring.user" .) (include "mooring.cleanupUser" .)) }})
{{- end -}}

{{/*
The binding of a policy: what happens to who does not keep it.
*/}}
{{- define "mooring.policyBinding" -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "mooring.policyName" . }}
  labels:
    {{- include "mooring.labels" .root | nindent 4 }}
spec:
  policyName: {{ include "mooring.policyName" . }}
  validationActions: [{{ .action }}]
{{- end -}}

{{/*
Whether the cluster has ValidatingAdmissionPolicies in their stable form: "true"
or empty.
*/}}
{{- define "mooring.canValidate" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version -}}
true
{{- end -}}
{{- end -}}

{{/*
Whether the cluster has MutatingAdmissionPolicies in their stable form: "true" or
empty.
*/}}
{{- define "mooring.canMutate" -}}
{{- if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version -}}
true
{{- end -}}
{{- end -}}
