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

{{/* Parts shared by the service and the migration job. */}}
{{- define "bellwether.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - {name: BELLWETHER_STORE_URL, value: {{ required "store.url: name the database" .Values.store.url | quote }}}
  - {name: BELLWETHER_STORE_SCHEMA, value: {{ .Values.store.schema | quote }}}
  - {name: BELLWETHER_STORE_PASSWORD_FILE, value: /secrets/password}
  - {name: BELLWETHER_STORE_SECRET_KEY_FILE, value: /secrets/secret.key}
  - {name: BELLWETHER_STORE_NODE_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: BELLWETHER_DATA_DIR, value: /data}
  {{- with .Values.environment }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - {name: secrets, mountPath: /secrets, readOnly: true}
  - {name: data, mountPath: /data}
  {{- if .Values.config }}
  - {name: config, mountPath: /etc/bellwether, readOnly: true}
  {{- end }}
  {{- if .Values.tls.secret }}
  - {name: tls, mountPath: /tls, readOnly: true}
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "bellwether.pod" -}}
automountServiceAccountToken: false
# Without this, Kubernetes sets variables for Services, which are not settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
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
volumes:
  - name: secrets
    secret: {secretName: {{ .Values.store.secret }}, defaultMode: 0440}
  # Holds only a file with the service's address.
  - name: data
    emptyDir: {sizeLimit: 16Mi}
  {{- if .Values.config }}
  - name: config
    configMap: {name: {{ .Release.Name }}}
  {{- end }}
  {{- with .Values.tls.secret }}
  - name: tls
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
{{- end }}

{{- define "bellwether.arguments" -}}
{{- if .Values.config }}
- --config=/etc/bellwether/bellwether.toml
{{- end }}
{{- end }}
