{{- define "bellwether.labels" -}}
app.kubernetes.io/name: bellwether
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "bellwether.selector" -}}
app.kubernetes.io/name: bellwether
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bellwether.replicas" -}}
{{- if .Values.store.url }}
{{- .Values.replicas | default 3 }}
{{- else if gt (int .Values.replicas) 1 }}
{{- fail "replicas: several nodes need a database; set store.url, or one replica" }}
{{- else }}
{{- 1 }}
{{- end }}
{{- end }}

{{- define "bellwether.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (and .Values.serviceAccount.create .Release.Name) | default "default" }}
{{- end }}

{{/* Parts shared by the service and the migration job. */}}
{{- define "bellwether.container" -}}
image: "{{ required "image.repository: required, such as registry.example.net/bellwether" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  {{- if .Values.store.url }}
  - {name: BELLWETHER_STORE_URL, value: {{ .Values.store.url | quote }}}
  - {name: BELLWETHER_STORE_SCHEMA, value: {{ .Values.store.schema | quote }}}
  - {name: BELLWETHER_STORE_PASSWORD_FILE, value: /secrets/password}
  - {name: BELLWETHER_STORE_SECRET_KEY_FILE, value: /secrets/secret.key}
  - {name: BELLWETHER_STORE_NODE_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: BELLWETHER_DATA_DIR, value: /data}
  {{- else }}
  # A folder in the volume, because the volume itself may be writable by every user.
  - {name: BELLWETHER_DATA_DIR, value: /data/bellwether}
  {{- end }}
  {{- with .Values.environment }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - {name: data, mountPath: /data}
  {{- if .Values.store.url }}
  - {name: secrets, mountPath: /secrets, readOnly: true}
  {{- end }}
  {{- if .Values.config }}
  - {name: config, mountPath: /etc/bellwether, readOnly: true}
  {{- end }}
  {{- if .Values.tls.secret }}
  - {name: tls, mountPath: /tls, readOnly: true}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "bellwether.pod" -}}
serviceAccountName: {{ include "bellwether.serviceAccount" . }}
automountServiceAccountToken: false
# Without this, Kubernetes sets variables for Services, which are not settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  # Otherwise each start makes the keys in the volume readable by the group.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "bellwether.volumes" . }}
{{- end }}

{{- define "bellwether.volumes" -}}
{{- if or .Values.store.url .Values.config .Values.tls.secret .Values.extraVolumes }}
volumes:
  {{- if .Values.store.url }}
  - name: secrets
    secret: {secretName: {{ .Values.store.secret }}, defaultMode: 0440}
  # Holds only a file with the service's address.
  - name: data
    emptyDir: {sizeLimit: 16Mi}
  {{- end }}
  {{- if .Values.config }}
  - name: config
    configMap: {name: {{ .Release.Name }}}
  {{- end }}
  {{- with .Values.tls.secret }}
  - name: tls
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
