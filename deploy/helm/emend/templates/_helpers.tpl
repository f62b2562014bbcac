{{- /* An image by the name of its program: its digest, if values say one, or else the tag. */}}
{{- define "emend.image" }}
{{- $root := index . 0 }}
{{- $program := index . 1 }}
{{- $images := $root.Values.images }}
{{- with index $images.digests $program }}
{{- printf "%s/%s@%s" $images.registry $program . }}
{{- else }}
{{- printf "%s/%s:%s" $images.registry $program ($images.tag | default $root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* A service's ConfigMap, whose name changes with its content, so that pods are replaced: of values or, with the hash that
Kustomize gave it, of the manifests. */}}
{{- define "emend.config" }}
{{- $config := index . 1 }}
{{- printf "emend-%s-config-%s" (index . 0) (ternary (sha256sum $config | trunc 10) (index . 2) (ne $config "")) }}
{{- end }}
