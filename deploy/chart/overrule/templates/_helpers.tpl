{{/* Labels of every object. Selectors have none of them: they are those of deploy/base. */}}
{{- define "overrule.labels" -}}
app.kubernetes.io/part-of: overrule
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The objects of one file of files/, in the release's namespace and with its labels: a dict of root, yaml
and, if there are any, annotations. The names stay: the server knows its objects by them. */}}
{{- define "overrule.objects" -}}
{{- range regexSplit "(?m)^---\\s*$" (.yaml | replace "overrule-system" .root.Release.Namespace) -1 }}
{{- $object := fromYaml . }}
{{- if $object }}
{{- $metadata := $object.metadata }}
{{- $_ := set $metadata "labels" (merge (include "overrule.labels" $.root | fromYaml) (default dict $metadata.labels)) }}
{{- with $.annotations }}
{{- $_ := set $metadata "annotations" (merge (deepCopy .) (default dict $metadata.annotations)) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}

{{- define "overrule.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* The server's flags. */}}
{{- define "overrule.args" -}}
- --enforcement={{ .Values.enforcement }}
- --failure-policy={{ .Values.failurePolicy }}
- --log-format=json
{{- if ne .Values.logLevel "info" }}
- --log-level={{ .Values.logLevel }}
{{- end }}
{{- if .Values.blastRadiusLimit }}
- --blast-radius-limit={{ int64 .Values.blastRadiusLimit }}
{{- end }}
{{- if .Values.staticWebhooks.enabled }}
- --manage-webhooks=false
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where pods of the release may run, and as whom. */}}
{{- define "overrule.pod" -}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "overrule.container" -}}
image: {{ include "overrule.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}
