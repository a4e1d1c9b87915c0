import { stringify } from 'yaml';
import { BUILDS_NAMESPACE } from '../api/names.ts';
import type { KubernetesObject } from '../api/object.ts';

/** When a template is rendered at all: a switch of values.yaml, in Helm's words. */
export type HelmCondition = string | undefined;

interface PodSpecObject extends KubernetesObject {
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly containers: readonly ContainerWithArgs[];
        readonly nodeSelector: Readonly<Record<string, string>>;
        readonly tolerations: readonly unknown[];
        readonly affinity?: unknown;
      };
    };
  };
}

interface ContainerWithArgs {
  readonly args?: readonly string[];
  readonly env?: readonly unknown[];
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
  pageArguments: '@@pageArguments@@',
  environment: '@@environment@@',
  runbooks: '@@runbooks@@',
  pageMounts: '@@pageMounts@@',
  pageVolumes: '@@pageVolumes@@',
  hostUsers: '@@hostUsers@@',
} as const;

const NAMESPACE = 'shale-system';
const LEASE_NAMESPACE = 'medik8s-leases';
const IMAGE = 'shale:latest';
/** Of the alerts (manifests/components/monitoring): each names its section of the page. */
const RUNBOOKS = 'https://shale.dev/docs/runbooks';
/** The operator creates the builder's Deployment. */
const BUILDER_POD = '$1- --builder-pod\n$1- {{ toJson .Values.builder | quote }}\n';
/** What the component's patches add (manifests/components/engine-host-users). */
const HOST_USERS = '$1{{- if .Values.engineHostUsers }}\n$1shale.dev/host-users: allowed\n$1{{- end }}\n';
const HOST_USERS_FLAG = '$1{{- if .Values.engineHostUsers }}\n$1- --engine-host-users\n$1{{- end }}\n';
/** What the patches of manifests/components/live-page-service add; its Secret has another name in another release. */
const PAGE_TLS = whereTls('- --tls-dir', '- /etc/shale/page-tls');
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
 * @param condition under which there is anything of them; with a header outside of it Helm would print an empty
 *   document.
 * @param header comment above them.
 * @returns a template of Helm that renders them, with the release's namespace and the values of values.yaml.
 */
export function helmTemplate(
  objects: readonly KubernetesObject[],
  condition: HelmCondition,
  header: string,
): string {
  const documents = objects.map((object) => rendered(withMarks(object)));
  const body = header + documents.join('---\n');
  return condition === undefined ? body : `{{- if ${condition} }}\n${body}{{- end }}\n`;
}

function withMarks(object: KubernetesObject): unknown {
  const marked = marksIn(object) as KubernetesObject;
  switch (`${object.kind} ${object.metadata.name}`) {
    case 'Deployment shale-operator':
      return withPodSettings(
        withArguments(marked as PodSpecObject, marks.operatorArguments, { replicas: marks.replicas }),
        'operator',
      );
    case 'Deployment shale-page':
      return withPageTls(
        withPodSettings(withArguments(marked as PodSpecObject, marks.pageArguments, {}), 'page'),
      );
    case 'DaemonSet shale-daemon':
      return withPodSettings(
        withArguments(marked as PodSpecObject, marks.daemonArguments, {}),
        'daemon',
      ) as PodSpecObject;
    case `Namespace ${LEASE_NAMESPACE}`:
      // Other operators keep their leases there, too: helm uninstall must not delete it.
      return {
        ...marked,
        metadata: { ...marked.metadata, annotations: { 'helm.sh/resource-policy': 'keep' } },
      };
    case `Namespace ${BUILDS_NAMESPACE}`:
      return {
        ...marked,
        metadata: { ...marked.metadata, labels: { ...marked.metadata.labels, [marks.hostUsers]: '' } },
      };
    default:
      return marked;
  }
}

/** Namespaces stand in many places, and in the middle of expressions. */
function marksIn(value: unknown): unknown {
  if (typeof value === 'string') {
    if (value === IMAGE) return marks.image;
    if (value.startsWith(`${RUNBOOKS}#`)) return value.replace(RUNBOOKS, marks.runbooks);
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
    ...(container.env === undefined ? {} : { env: [...container.env, marks.environment] }),
  }));
  const spec = {
    ...object.spec,
    ...fields,
    template: { ...template, spec: { ...template.spec, containers } },
  };
  return { ...object, spec };
}

/** Each mark is replaced with what a value of the process has ({@link podSettings}). */
function withPodSettings(object: PodSpecObject, process: Process): PodSpecObject {
  const { template } = object.spec;
  const { affinity, ...spec } = template.spec;
  const mark = (name: string) => `@@${process}-${name}@@`;
  const containers = spec.containers.map((container) => ({ ...container, resources: mark('resources') }));
  const pod = {
    [mark('pullSecrets')]: '',
    ...spec,
    containers,
    nodeSelector: { ...spec.nodeSelector, [mark('nodeSelector')]: '' },
    ...(affinity === undefined
      ? {}
      : {
          tolerations: [...spec.tolerations, mark('tolerations')],
          [mark('affinity')]: '',
          affinity,
          [mark('affinityEnd')]: '',
        }),
  };
  const labels = { ...template.metadata.labels, [mark('podLabels')]: '' };
  const metadata = { [mark('podAnnotations')]: '', ...template.metadata, labels };
  return { ...object, spec: { ...object.spec, template: { ...template, metadata, spec: pod } } };
}

type Process = 'operator' | 'daemon' | 'page';

/** What stands in the place of a mark: lines of a template below the mark's own indentation. */
const podSettings: Readonly<Record<string, (value: string, indent: string) => readonly string[]>> = {
  resources: (value, indent) => field('resources', `${value}.resources`, indent),
  pullSecrets: (_, indent) => field('imagePullSecrets', '.Values.imagePullSecrets', indent),
  nodeSelector: (value, indent) => more(`${value}.nodeSelector`, indent),
  tolerations: (value, indent) => more(`${value}.tolerations`, indent),
  podLabels: (value, indent) => more(`${value}.podLabels`, indent),
  podAnnotations: (value, indent) => field('annotations', `${value}.podAnnotations`, indent),
  affinity: (value, indent) => [
    ...field('affinity', `${value}.affinity`, indent),
    `{{- if not ${value}.affinity }}`,
  ],
  affinityEnd: () => ['{{- end }}'],
};

function field(name: string, value: string, indent: string): readonly string[] {
  return [
    `{{- if ${value} }}`,
    `${name}:`,
    `  {{- toYaml ${value} | nindent ${indent.length + 2} }}`,
    '{{- end }}',
  ];
}

/** What a value adds to a map or a list. */
function more(value: string, indent: string): readonly string[] {
  return [`{{- if ${value} }}`, `{{- toYaml ${value} | nindent ${indent.length} }}`, '{{- end }}'];
}

/** A mark is an item of a list, a field's name, or the value of `resources`. */
function withPodSettingsRendered(text: string): string {
  const line = /^( *)(?:- |resources: )?"@@(operator|daemon|page)-([A-Za-z]+)@@"(?:: "")?\n/gm;
  return text.replaceAll(line, (_, indent: string, process: Process, name: string) => {
    const lines = podSettings[name]?.(`.Values.${process}`, indent) ?? [];
    return lines.map((each) => `${indent}${each}\n`).join('');
  });
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
  // What Prometheus and Grafana have in braces is theirs to fill in.
  const escaped = text.replaceAll('{{', '{{ "{{" }}');
  return withPodSettingsRendered(escaped)
    .replaceAll(new RegExp(`^( *)- "(?:${marks.operatorArguments})"\n`, 'gm'), moreArguments('operator'))
    .replaceAll(new RegExp(`^( *)- "(?:${marks.daemonArguments})"\n`, 'gm'), moreArguments('daemon'))
    .replaceAll(new RegExp(`^( *)- "(?:${marks.pageArguments})"\n`, 'gm'), moreArguments('page'))
    .replaceAll(new RegExp(`^( *)volumeMounts:\n *- "${marks.pageMounts}"\n`, 'gm'), PAGE_MOUNTS)
    .replaceAll(new RegExp(`^( *)volumes:\n *- "${marks.pageVolumes}"\n`, 'gm'), PAGE_VOLUMES)
    .replaceAll(new RegExp(`^( *)"?${marks.hostUsers}"?: ""\n`, 'gm'), HOST_USERS)
    .replaceAll(new RegExp(`^( *)- "(?:${marks.environment})"\n`, 'gm'), (_, indent: string) =>
      environment(indent),
    )
    .replaceAll(`"${marks.replicas}"`, '{{ .Values.operator.replicas }}')
    .replaceAll(marks.namespace, '{{ .Release.Namespace }}')
    .replaceAll(marks.leaseNamespace, '{{ .Values.leaseNamespace }}')
    .replaceAll(marks.image, '{{ .Values.image }}')
    .replaceAll(marks.runbooks, '{{ .Values.runbooks }}');
}

/** What the components' patches add (manifests/components/tracing, manifests/components/egress-proxy). */
function environment(indent: string): string {
  const lines = [
    '{{- if .Values.tracingEndpoint }}',
    '- name: OTEL_EXPORTER_OTLP_ENDPOINT',
    '  value: {{ .Values.tracingEndpoint | quote }}',
    '{{- end }}',
    ...more('.Values.environment', indent),
  ];
  return lines.map((line) => `${indent}${line}\n`).join('');
}

const OWN_ARGUMENTS: Readonly<Record<Process, string>> = {
  operator: BUILDER_POD + HOST_USERS_FLAG,
  daemon: '',
  page: PAGE_TLS,
};

function moreArguments(process: Process): string {
  return `${OWN_ARGUMENTS[process]}$1{{- range .Values.${process}.arguments }}\n$1- {{ . | quote }}\n$1{{- end }}\n`;
}
