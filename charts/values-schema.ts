import { z } from 'zod';

/** The chart's values: `values.schema.json`, by which Helm rejects a misspelt one, and the table of the README. */

const strings = z.record(z.string(), z.string());
/** Kubernetes checks these itself; the schema says what shape they have. */
const quantity = z.union([z.string(), z.number()]);
const resources = z
  .strictObject({
    requests: z.record(z.string(), quantity).optional(),
    limits: z.record(z.string(), quantity).optional(),
  })
  .describe('requests and limits');
/** `--builder-pod` passes these on as they are, and takes quantities as text only. */
const textResources = z
  .strictObject({ requests: strings.optional(), limits: strings.optional() })
  .describe('requests and limits of its container');
const flags = (command: string) => z.array(z.string()).describe(`flags of \`${command}\``);
const nodeSelector = strings.describe('labels of the nodes that it runs on');
const tolerations = z
  .array(z.looseObject({ key: z.string().optional(), operator: z.enum(['Exists', 'Equal']).optional() }))
  .describe('beside those of the control plane and of nodes that are not configured yet');
const affinity = z.looseObject({}).describe('in place of the preference for nodes of the control plane');
const podAnnotations = strings.describe('annotations of its pods');
const podLabels = strings.describe('labels of its pods');

export const chartValues = z.strictObject({
  image: z.string().min(1).describe("Shale's image, for all of its processes: name it by digest"),
  imagePullSecrets: z
    .array(z.strictObject({ name: z.string().min(1) }))
    .describe("Secrets in the release's namespace with which the kubelet pulls that image"),
  operator: z.strictObject({
    replicas: z.int().min(1).describe('more than one: the others wait to take over'),
    arguments: flags('shale operator'),
    resources,
    nodeSelector,
    tolerations,
    affinity,
    podAnnotations,
    podLabels,
  }),
  builder: z.strictObject({
    resources: textResources,
    nodeSelector,
    tolerations,
    affinity,
    podAnnotations,
    podLabels,
  }),
  daemon: z.strictObject({
    arguments: flags('shale daemon'),
    resources,
    nodeSelector: strings.describe('only nodes with these labels get a daemon'),
    podAnnotations,
    podLabels,
  }),
  page: z.strictObject({
    arguments: flags('shale page'),
    resources,
    nodeSelector,
    tolerations: tolerations.describe('beside that of the control plane'),
    affinity,
    podAnnotations,
    podLabels,
  }),
  engineHostUsers: z
    .boolean()
    .describe('run the pods of builds without a user namespace, on clusters that have none'),
  leaseNamespace: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .describe('namespace of the node leases: that of the medik8s operators'),
  createLeaseNamespace: z.boolean().describe('create that namespace'),
  admissionPolicies: z.boolean().describe('reject at admission what would be rejected or undone later'),
  networkPolicies: z.boolean().describe("restrict access to Shale's pods"),
  machineHealthChecks: z
    .boolean()
    .describe('exempt Machines of Cluster API from MachineHealthChecks while their nodes are updated'),
  livePage: z.boolean().describe('run the live page, on the loopback of its pod'),
  livePageTlsSecret: z
    .string()
    .describe('with livePage: Secret of type kubernetes.io/tls for the Service shale-page'),
  clusterApi: z.boolean().describe('run the update extension of a management cluster of Cluster API'),
  clusterApiCertificate: z.boolean().describe('with clusterApi: have cert-manager make its certificate'),
  clusterApiWorkload: z
    .boolean()
    .describe('permit the update extension of a management cluster what it does in this workload cluster'),
  environment: z
    .array(z.looseObject({ name: z.string().min(1) }))
    .describe('variables of operator and daemon; the builder gets those of proxies and of OpenTelemetry'),
  tracingEndpoint: z
    .union([z.literal(''), z.url({ protocol: /^https?$/ })])
    .describe('OpenTelemetry collector that takes traces by OTLP over HTTP'),
  monitoring: z.boolean().describe('ServiceMonitor, alerts and a dashboard; needs the Prometheus operator'),
  runbooks: z
    .url({ protocol: /^https?$/ })
    .describe('with monitoring: page with a section for each alert, as docs/runbooks.md has it'),
  global: z.looseObject({}).optional().describe('Helm passes it to charts that another one depends on'),
});

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** @returns `values.schema.json`. */
export function valuesSchema(): string {
  return `${JSON.stringify(z.toJSONSchema(chartValues, { target: 'draft-7' }), undefined, 2)}\n`;
}

/**
 * @param defaults content of values.yaml.
 * @returns a table in Markdown of every value with its default, in the order of the schema.
 */
export function valuesTable(defaults: unknown): string {
  const rows = rowsOf(z.toJSONSchema(chartValues) as Schema, defaults, '');
  return ['| value | default | what it sets |', '| --- | --- | --- |', ...rows].join('\n');
}

function rowsOf({ properties = {} }: Schema, defaults: unknown, prefix: string): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const value = (defaults as Readonly<Record<string, unknown>> | undefined)?.[name];
    if (value === undefined) return [];
    if (schema.description === undefined) return rowsOf(schema, value, `${prefix}${name}.`);
    return [`| \`${prefix}${name}\` | \`${JSON.stringify(value)}\` | ${schema.description} |`];
  });
}
