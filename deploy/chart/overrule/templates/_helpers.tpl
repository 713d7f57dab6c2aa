{{/* Labels of every object. Selectors do not use them: they are the ones of deploy/base. */}}
{{- define "overrule.labels" -}}
app.kubernetes.io/part-of: overrule
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The objects of one file of files/, in the namespace of the release and with its labels. The argument is a dict of
root and yaml; optional are annotations and spec (fields to replace). Names do not change: the server finds its objects by name. */}}
{{- define "overrule.objects" -}}
{{- range regexSplit "(?m)^---\\s*$" (.yaml | replace "overrule-system" .root.Release.Namespace) -1 }}
{{- $object := fromYaml . }}
{{- if $object }}
{{- $metadata := $object.metadata }}
{{- $_ := set $metadata "labels" (merge (include "overrule.labels" $.root | fromYaml) (default dict $metadata.labels)) }}
{{- with $.annotations }}
{{- $_ := set $metadata "annotations" (merge (deepCopy .) (default dict $metadata.annotations)) }}
{{- end }}
{{- with $.spec }}
{{- $_ := set $object "spec" (mergeOverwrite $object.spec (deepCopy .)) }}
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

{{/* The flags of the server. */}}
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
{{- if ne (int64 .Values.maxMatches) 2000 }}
- --max-matches={{ int64 .Values.maxMatches }}
{{- end }}
{{- if ne (int64 .Values.webhookTimeoutSeconds) 3 }}
- --webhook-timeout={{ int64 .Values.webhookTimeoutSeconds }}s
{{- end }}
{{- if ne .Values.coordination "leader" }}
- --coordination={{ .Values.coordination }}
{{- end }}
{{- if .Values.staticWebhooks.enabled }}
- --manage-webhooks=false
{{- end }}
{{- if ne .Values.certificates.mode "self" }}
- --certificates={{ .Values.certificates.mode }}
{{- end }}
{{- if include "overrule.clientCA" . }}
- --client-ca-file=/etc/overrule/client-ca/{{ .Values.clientCA.key }}
{{- range .Values.clientCA.subjects }}
- {{ printf "--client-subject=%s" . | quote }}
{{- end }}
{{- end }}
{{- with .Values.refresh }}
{{- if .enabled }}
- --refresh
{{- if ne (float64 .qps) 10.0 }}
- --refresh-qps={{ .qps }}
{{- end }}
{{- if not .affected }}
- --refresh-affected=false
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The source of the authorities of callers, if callers need a certificate. */}}
{{- define "overrule.clientCA" -}}
{{- with .Values.clientCA }}
{{- if .configMap -}}
configMap:
  name: {{ .configMap }}
  optional: true
{{- else if .secret -}}
secret:
  secretName: {{ .secret }}
  optional: true
{{- end }}
{{- end }}
{{- end }}

{{/* The volumes of files that the server reads. It starts without them, and reports what it waits for. */}}
{{- define "overrule.volumes" -}}
{{- with include "overrule.clientCA" . }}
- name: client-ca
  {{- . | nindent 2 }}
{{- end }}
{{- if ne .Values.certificates.mode "self" }}
- name: certificate
  secret:
    secretName: {{ .Values.certificates.secretName }}
    optional: true
{{- end }}
{{- end }}

{{- define "overrule.mounts" -}}
{{- if include "overrule.clientCA" . }}
- name: client-ca
  mountPath: /etc/overrule/client-ca
  readOnly: true
{{- end }}
{{- if ne .Values.certificates.mode "self" }}
- name: certificate
  mountPath: /etc/overrule/certs
  readOnly: true
{{- end }}
{{- end }}

{{/* Checks that a schema cannot express well: values that exclude or require each other. */}}
{{- define "overrule.check" -}}
{{- with .Values.certificates }}
{{- if and .issuerRef (ne .mode "cert-manager") }}
{{- fail (printf "certificates.issuerRef requires certificates.mode=cert-manager, but the mode is %s: change one of the two" .mode) }}
{{- end }}
{{- end }}
{{- with .Values.clientCA }}
{{- if and .configMap .secret }}
{{- fail "clientCA.configMap and clientCA.secret are mutually exclusive: set only the one that contains the authorities" }}
{{- end }}
{{- if and .subjects (not (or .configMap .secret)) }}
{{- fail "clientCA.subjects requires clientCA.configMap or clientCA.secret: set the one that contains the authorities" }}
{{- end }}
{{- end }}
{{- if and .Values.priorityClass.create .Values.priorityClassName }}
{{- fail "priorityClass.create and priorityClassName are mutually exclusive: unset one of the two" }}
{{- end }}
{{- end }}

{{/* Fields of all Pods of the release: scheduling and security context. */}}
{{- define "overrule.pod" -}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with .Values.priorityClass.create | ternary "overrule" .Values.priorityClassName }}
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
