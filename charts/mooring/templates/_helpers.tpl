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
The labels by which the Pods are found. They never change in a release's life.
*/}}
{{- define "mooring.selectorLabels" -}}
app.kubernetes.io/name: mooring
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mooring.labels" -}}
{{ include "mooring.selectorLabels" . }}
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
