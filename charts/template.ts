import { stringify } from 'yaml';
import type { KubernetesObject } from '../api/object.ts';

/** When a template is rendered at all: a switch of values.yaml, in Helm's words. */
export type Condition = string | undefined;

interface PodSpecObject extends KubernetesObject {
  readonly spec: {
    readonly replicas?: number;
    readonly template: { readonly spec: { readonly containers: readonly ContainerWithArgs[] } };
  };
}

interface ContainerWithArgs {
  readonly args?: readonly string[];
}

/**
 * Stands in an object for what a value of the chart decides. No YAML scalar may begin with an @, so that one which is
 * nothing else comes out in quotes, and still is text when it is rendered.
 */
const marks = {
  namespace: '@@namespace@@',
  leaseNamespace: '@@leaseNamespace@@',
  image: '@@image@@',
  replicas: '@@replicas@@',
  operatorArguments: '@@operatorArguments@@',
  daemonArguments: '@@daemonArguments@@',
  tracingEndpoint: '@@tracingEndpoint@@',
  pageMounts: '@@pageMounts@@',
  pageVolumes: '@@pageVolumes@@',
} as const;

const NAMESPACE = 'shale-system';
const LEASE_NAMESPACE = 'medik8s-leases';
const IMAGE = 'shale:latest';
/** Of the component (manifests/components/tracing). */
const TRACING_ENDPOINT = 'http://otel-collector.observability.svc:4318';
/** What the component's patch adds (manifests/components/live-page). */
const LIVE_PAGE = '$1{{- if .Values.livePage }}\n$1- --page-port\n$1- "8090"\n$1{{- end }}\n';
/** What that of manifests/components/live-page-service adds; its Secret has another name in another release. */
const PAGE_TLS = whereTls('- --page-tls-dir', '- /etc/shale/page-tls');
const PAGE_MOUNTS = whereTls(
  'volumeMounts:',
  '  - name: page-tls',
  '    mountPath: /etc/shale/page-tls',
  '    readOnly: true',
);
const PAGE_VOLUMES = whereTls(
  'volumes:',
  '  - name: page-tls',
  '    secret:',
  '      secretName: {{ .Values.livePageTlsSecret | quote }}',
  '      optional: true',
);

function whereTls(...lines: readonly string[]): string {
  const all = ['{{- if .Values.livePageTlsSecret }}', ...lines, '{{- end }}'];
  return all.map((line) => `$1${line}\n`).join('');
}

/**
 * @param objects of the manifests, as kustomize makes them.
 * @returns a template of Helm that renders them, with the release's namespace and the values of values.yaml.
 */
export function templateOf(objects: readonly KubernetesObject[], condition: Condition): string {
  const documents = objects.map((object) => rendered(withMarks(object)));
  const body = documents.join('---\n');
  return condition === undefined ? body : `{{- if ${condition} }}\n${body}{{- end }}\n`;
}

function withMarks(object: KubernetesObject): unknown {
  const marked = marksIn(object) as KubernetesObject;
  switch (`${object.kind} ${object.metadata.name}`) {
    case 'Deployment shale-operator':
      return withPageTls(
        withArguments(marked as PodSpecObject, marks.operatorArguments, { replicas: marks.replicas }),
      );
    case 'DaemonSet shale-daemon':
      return withArguments(marked as PodSpecObject, marks.daemonArguments, {});
    default:
      return marked;
  }
}

/** Namespaces stand in many places, and in the middle of expressions. */
function marksIn(value: unknown): unknown {
  if (typeof value === 'string') {
    if (value === IMAGE) return marks.image;
    if (value === TRACING_ENDPOINT) return marks.tracingEndpoint;
    return value.replaceAll(NAMESPACE, marks.namespace).replaceAll(LEASE_NAMESPACE, marks.leaseNamespace);
  }
  if (Array.isArray(value)) return value.map(marksIn);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, marksIn(item)]));
}

/** The namespace of leases is a flag where it isn't the default; a chart need not know which one that is. */
function withArguments(
  object: PodSpecObject,
  more: string,
  fields: Readonly<Record<string, unknown>>,
): PodSpecObject {
  const { template } = object.spec;
  const containers = template.spec.containers.map((container) => ({
    ...container,
    args: [...(container.args ?? []), '--lease-namespace', marks.leaseNamespace, more],
  }));
  const spec = {
    ...object.spec,
    ...fields,
    template: { ...template, spec: { ...template.spec, containers } },
  };
  return { ...object, spec };
}

function withPageTls(object: PodSpecObject): unknown {
  const { template } = object.spec;
  const containers = template.spec.containers.map((container) => ({
    ...container,
    volumeMounts: [marks.pageMounts],
  }));
  const pod = { ...template.spec, containers, volumes: [marks.pageVolumes] };
  return { ...object, spec: { ...object.spec, template: { ...template, spec: pod } } };
}

function rendered(object: unknown): string {
  const text = stringify(object, { lineWidth: 0, aliasDuplicateObjects: false });
  return (
    text
      // What Prometheus and Grafana have in braces is theirs to fill in.
      .replaceAll('{{', '{{ "{{" }}')
      .replaceAll(new RegExp(`^( *)- "(?:${marks.operatorArguments})"\n`, 'gm'), moreArguments('operator'))
      .replaceAll(new RegExp(`^( *)- "(?:${marks.daemonArguments})"\n`, 'gm'), moreArguments('daemon'))
      .replaceAll(new RegExp(`^( *)volumeMounts:\n *- "${marks.pageMounts}"\n`, 'gm'), PAGE_MOUNTS)
      .replaceAll(new RegExp(`^( *)volumes:\n *- "${marks.pageVolumes}"\n`, 'gm'), PAGE_VOLUMES)
      .replaceAll(`"${marks.replicas}"`, '{{ .Values.operator.replicas }}')
      .replaceAll(marks.namespace, '{{ .Release.Namespace }}')
      .replaceAll(marks.leaseNamespace, '{{ .Values.leaseNamespace }}')
      .replaceAll(marks.image, '{{ .Values.image }}')
      .replaceAll(marks.tracingEndpoint, '{{ .Values.tracingEndpoint }}')
  );
}

function moreArguments(process: 'operator' | 'daemon'): string {
  const page = process === 'operator' ? LIVE_PAGE + PAGE_TLS : '';
  return `${page}$1{{- range .Values.${process}.arguments }}\n$1- {{ . | quote }}\n$1{{- end }}\n`;
}
