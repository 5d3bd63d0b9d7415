{{/* The prefix of all names: the release, which contains "sextant" or gets it as a suffix. */}}
{{- define "sextant.prefix" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* Labels that select Pods. Context of these templates: dict "root" $ "component" NAME ["values" COMPONENT]. */}}
{{- define "sextant.selector" -}}
app.kubernetes.io/name: sextant
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels that Helm asks for. Context: $. */}}
{{- define "sextant.release" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "sextant.labels" -}}
{{ include "sextant.selector" . }}
{{ include "sextant.release" .root }}
{{- end -}}

{{/* Metadata of an object with the name of its component. "namespace": default that of the release. */}}
{{- define "sextant.metadata" -}}
name: {{ include "sextant.prefix" .root }}-{{ .name | default .component }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
labels:
  {{- include "sextant.labels" . | nindent 2 }}
{{- end -}}

{{/* The same for objects without a namespace. */}}
{{- define "sextant.clusterMetadata" -}}
name: {{ include "sextant.prefix" .root }}-{{ .name | default .component }}
labels:
  {{- include "sextant.labels" . | nindent 2 }}
{{- end -}}

{{/* Context: dict "root" $ "image" IMAGE. */}}
{{- define "sextant.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/*
A binding and the account that it is for. "role": name without prefix; "kind": Role or ClusterRole; "in": the namespace, none =
a ClusterRoleBinding; "suffix": of the name of the binding, default none; "account": name without
prefix; "accountNamespace": default that of the release.
*/}}
{{- define "sextant.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if .in }}RoleBinding{{ else }}ClusterRoleBinding{{ end }}
metadata:
  name: {{ include "sextant.prefix" .root }}-{{ .role }}{{ .suffix }}
  {{- with .in }}
  namespace: {{ quote . }}
  {{- end }}
  labels:
    {{- include "sextant.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind | default "ClusterRole" }}
  name: {{ include "sextant.prefix" .root }}-{{ .role }}
subjects:
- kind: ServiceAccount
  name: {{ include "sextant.prefix" .root }}-{{ .account }}
  namespace: {{ .accountNamespace | default .root.Release.Namespace | quote }}
{{- end -}}

{{/*
Bindings of a role where records are: in all namespaces, or in those of `watchNamespaces`. The namespace of the release
has bindings of that name for other roles.
*/}}
{{- define "sextant.scopedBindings" -}}
{{- $all := . -}}
{{- range .root.Values.watchNamespaces }}
---
{{- $suffix := ternary "-records" "" (eq . $all.root.Release.Namespace) }}
{{ include "sextant.binding" (merge (dict "in" . "suffix" $suffix) $all) }}
{{- else }}
---
{{ include "sextant.binding" . }}
{{- end }}
{{- end -}}

{{/* The fields of a Pod that each component has in its values. */}}
{{- define "sextant.scheduling" -}}
{{- with .values.priorityClassName }}
priorityClassName: {{ quote . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range .values.topologySpreadConstraints }}
- {{- toYaml (merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" (fromYaml (include "sextant.selector" $))))) | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of a Pod. */}}
{{- define "sextant.podMetadata" -}}
labels:
  {{- include "sextant.selector" . | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "sextant.nodeAddresses" -}}
# The kubelet's probes come from here: they have reserved places.
- name: SEXTANT_NODE_ADDRESSES
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end -}}

{{/* Context: dict "root" $ "key" KEY, for each KEY of the ConfigMap `scope`. */}}
{{- define "sextant.scopeVariable" -}}
- name: {{ .key }}
  valueFrom:
    configMapKeyRef:
      name: {{ include "sextant.prefix" .root }}-scope
      key: {{ .key }}
{{- end -}}

{{/* The Pods read the ConfigMap `scope` at their start: an annotation restarts them. */}}
{{- define "sextant.scopeChecksum" -}}
{{ list .Values.watchNamespaces .Values.operator.controllers .Values.operator.sources | toJson | sha256sum }}
{{- end -}}

{{/* A Pod that serves a Corefile. "account"; "env": text; "state": whether it has a volume for snapshots; "dnsPolicy". */}}
{{- define "sextant.servePod" -}}
metadata:
  {{- include "sextant.podMetadata" . | nindent 2 }}
spec:
  serviceAccountName: {{ include "sextant.prefix" .root }}-{{ .account }}
  {{- with .dnsPolicy }}
  # With ClusterFirst, /etc/resolv.conf would have the address of this server itself.
  dnsPolicy: {{ . }}
  {{- end }}
  enableServiceLinks: false
  # The lameduck of the Corefile, and time for the queries under way.
  terminationGracePeriodSeconds: 30
  securityContext:
    {{- toYaml .values.podSecurityContext | nindent 4 }}
  {{- include "sextant.scheduling" . | nindent 2 }}
  containers:
  - name: {{ .container }}
    image: {{ include "sextant.image" (dict "root" .root "image" .root.Values.image) | quote }}
    {{- with .root.Values.image.pullPolicy }}
    imagePullPolicy: {{ . }}
    {{- end }}
    args: [serve, -conf, /etc/sextant/Corefile]
    env:
    {{- include "sextant.nodeAddresses" . | nindent 4 }}
    # For Events about the Pod.
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    - name: POD_UID
      valueFrom:
        fieldRef:
          fieldPath: metadata.uid
    {{- with .env }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .values.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    ports:
    - name: dns
      containerPort: 1053
      protocol: UDP
    - name: dns-tcp
      containerPort: 1053
      protocol: TCP
    - name: health
      containerPort: 8080
    - name: ready
      containerPort: 8181
    - name: metrics
      containerPort: 9153
    startupProbe:
      httpGet:
        path: /health
        port: health
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet:
        path: /health
        port: health
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet:
        path: /ready
        port: ready
      periodSeconds: 2
      timeoutSeconds: 2
      failureThreshold: 3
    resources:
      {{- toYaml .values.resources | nindent 6 }}
    securityContext:
      {{- toYaml .values.securityContext | nindent 6 }}
    volumeMounts:
    - name: corefile
      mountPath: /etc/sextant
      readOnly: true
    {{- if .state }}
    - name: state
      mountPath: /var/lib/sextant
    {{- end }}
    {{- with .values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
  - name: corefile
    configMap:
      name: {{ .values.existingConfigMap | default (printf "%s-%s" (include "sextant.prefix" .root) .component) | quote }}
  {{- if .state }}
  # Outlives the container, not the Pod: after a crash, the server answers from the snapshot.
  - name: state
    emptyDir:
      sizeLimit: 2Gi
  {{- end }}
  {{- with .values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The Corefile of a component: `corefile` of its values, else the file of the chart, filled in with values. */}}
{{- define "sextant.corefile" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "sextant.prefix" .root }}-{{ .component }}
  namespace: {{ .namespace | default .root.Release.Namespace | quote }}
  labels:
    app.kubernetes.io/name: sextant
    {{- include "sextant.release" .root | nindent 4 }}
data:
  {{- $corefile := .values.corefile | default (tpl (.root.Files.Get (printf "files/%s.Corefile" .component)) .root) }}
  {{- toYaml (dict "Corefile" $corefile) | nindent 2 }}
{{- end -}}

{{/* The right to write Events about Pods. "account"; "namespace": default that of the release. */}}
{{- define "sextant.eventsRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "sextant.metadata" . | nindent 2 }}
rules:
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
---
{{ include "sextant.binding" (merge (dict "kind" "Role" "in" (.namespace | default .root.Release.Namespace)) .) }}
{{- end -}}

{{- define "sextant.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "sextant.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "sextant.selector" . | nindent 6 }}
{{- end -}}

{{- define "sextant.autoscaler" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "sextant.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "sextant.prefix" .root }}-{{ .component }}
  minReplicas: {{ .values.autoscaling.minReplicas }}
  maxReplicas: {{ .values.autoscaling.maxReplicas }}
  metrics:
  - type: Resource
    resource:
      name: cpu
      target:
        type: Utilization
        averageUtilization: {{ .values.autoscaling.cpuUtilization }}
{{- end -}}

{{/* "ingress", "egress": text of the rules that only this component has. */}}
{{- define "sextant.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "sextant.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "sextant.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
  {{- .ingress | trim | nindent 2 }}
  {{- /* An empty list would mean any source. */}}
  {{- with .root.Values.networkPolicy.metricsFrom }}
  - from:
    {{- toYaml . | nindent 4 }}
    ports:
    - port: metrics
  {{- end }}
  egress:
  {{- .egress | trim | nindent 2 }}
  {{- with .values.networkPolicy.extraEgress }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The Service of a DNS port. "ports": text. */}}
{{- define "sextant.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "sextant.metadata" . | nindent 2 }}
  {{- with .values.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .values.service.type }}
  {{- if ne .values.service.type "ClusterIP" }}
  # Local keeps the addresses of clients, by which GEO decides.
  externalTrafficPolicy: {{ .values.service.externalTrafficPolicy }}
  {{- end }}
  {{- with .values.service.spec }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  selector:
    {{- include "sextant.selector" . | nindent 4 }}
  ports:
  {{- .ports | trim | nindent 2 }}
{{- end -}}

{{- define "sextant.dnsPorts" -}}
- name: dns
  port: 53
  targetPort: dns
  protocol: UDP
- name: dns-tcp
  port: 53
  targetPort: dns-tcp
  protocol: TCP
{{- end -}}

{{- define "sextant.queryPorts" -}}
- port: dns
  protocol: UDP
- port: dns-tcp
  protocol: TCP
{{- end -}}
