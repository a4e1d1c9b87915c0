import { z } from 'zod';
import { DisruptionAction } from '../../api/disruption-action.ts';
import { ClusterPolicies } from '../../api/disruption-policy.ts';
import { SEVERITIES } from '../../api/vulnerabilities.ts';
import { PACKAGE_FORMATS } from '../../image/contents/package.ts';
import { PACKAGE_CHANGES } from '../../image/contents/package-changes.ts';
import { COSTS, type Cost } from '../../predict/cost.ts';
import { BuildView, NodeView, PoolView } from '../../view/schemas.ts';

/**
 * Schemas of what `-o json` and `-o yaml` print; the output is validated against them. Scripts depend on it: fields may
 * be added, but never renamed or removed. docs/reference/cli.md documents each.
 */
const problems = z.array(z.string());
const change = z.enum(['added', 'changed', 'removed']);
const broken = z.strictObject({ pool: z.string(), problems });

const Cause = z.strictObject({
  subject: z.string(),
  kind: z.enum(['file', 'unit', 'sshKey', 'field']),
  change,
  rule: z.string(),
  actions: z.array(DisruptionAction),
});

/** The number of a pool's nodes by disruption; the sum is all of its nodes. */
const outcomes = z.strictObject(
  Object.fromEntries(COSTS.map((cost) => [cost, z.number()])) as Record<Cost, z.ZodNumber>,
);

const diffs = z.array(
  z.strictObject({
    kind: z.enum(['file', 'directory', 'link', 'unit', 'sshKey', 'passwordHash', 'field']),
    subject: z.string(),
    change,
    diff: z.string(),
  }),
);

const names = z.array(z.string());
const sides = z.strictObject({ added: names, removed: names });
const accounts = z.array(
  z.strictObject({ name: z.string(), from: z.number().optional(), to: z.number().optional() }),
);

/** What is different between the contents of two images. */
const contentsDiff = {
  os: z.strictObject({ from: z.string(), to: z.string() }).optional(),
  packages: z
    .array(
      z.strictObject({
        change: z.enum(PACKAGE_CHANGES),
        name: z.string(),
        format: z.enum(PACKAGE_FORMATS),
        architecture: z.string(),
        from: z.string().optional(),
        to: z.string().optional(),
      }),
    )
    .optional(),
  unknown: names,
  kernels: sides,
  kernelArguments: sides,
  units: z.strictObject({
    enabled: names,
    disabled: names,
    removed: names,
    masked: names,
    unmasked: names,
  }),
  presets: sides,
  users: accounts,
  groups: accounts,
};

const vulnerabilities = z.array(
  z.strictObject({
    id: z.string(),
    aliases: names,
    severity: z.enum(SEVERITIES),
    packages: z.array(
      z.strictObject({ name: z.string(), version: z.string(), fixedVersion: z.string().optional() }),
    ),
  }),
);
const report = z
  .strictObject({ source: z.string(), tool: z.string(), created: z.string().optional() })
  .nullable();

/** What one image brings and fixes by the reports of both; `brought` and `fixed` are absent where one is missing. */
const vulnerabilityDiff = z.strictObject({
  reports: z.strictObject({ from: report, to: report }),
  brought: vulnerabilities.optional(),
  fixed: vulnerabilities.optional(),
  remarks: names,
});

export const PlanOutput = z.array(
  z.union([
    broken,
    z.strictObject({
      pool: z.string(),
      from: z.string().optional(),
      to: z.string(),
      actions: z.array(DisruptionAction),
      causes: z.array(Cause),
      softReboot: z.literal(true).optional(),
      changes: diffs,
      baseChange: z
        .strictObject({
          from: z.string(),
          to: z.string(),
          contents: z.strictObject({ summary: z.string(), ...contentsDiff }).optional(),
          unread: z.string().optional(),
          vulnerabilities: vulnerabilityDiff.optional(),
          vulnerabilitiesUnread: z.string().optional(),
        })
        .optional(),
      pinnedImages: z.strictObject({ added: z.number(), removed: z.number() }).optional(),
      image: z
        .strictObject({
          way: z.enum(['Append', 'Relabel', 'Engine', 'PreBuilt']),
          why: z.string(),
          problems: z.array(z.string()).readonly().optional(),
        })
        .optional(),
      nodes: z.number().optional(),
      outcomes: outcomes.optional(),
      refusing: z
        .array(
          z.strictObject({ nodes: z.array(z.string()), osBackend: z.string(), why: z.array(z.string()) }),
        )
        .optional(),
      irreconcilable: z.array(z.strictObject({ nodes: z.array(z.string()), why: z.string() })).optional(),
      time: z.strictObject({ seconds: z.number().optional(), why: z.string() }).optional(),
      warnings: z.array(z.string()).optional(),
    }),
  ]),
);

export const DiffOutput = z.array(
  z.union([
    broken,
    z.strictObject({
      pool: z.string().optional(),
      from: z.string().optional(),
      to: z.string(),
      changes: diffs,
    }),
  ]),
);

export const ValidateOutput = z.strictObject({ valid: z.boolean(), problems, warnings: z.array(z.string()) });

/** As the operator writes it to status.nodeDisruptionPolicyStatus.clusterPolicies. */
export const PoliciesOutput = ClusterPolicies;

/** A MachineConfig; its spec is as the operator writes it. */
export const RenderOutput = z.strictObject({
  apiVersion: z.string(),
  kind: z.literal('MachineConfig'),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({}),
});

export const ImageOutput = z.strictObject({
  digest: z.string(),
  platform: z.string(),
  platforms: z.array(z.string()).optional(),
  pool: z.string().nullable(),
  renderedConfig: z.string().nullable(),
  baseImage: z.string().nullable(),
  stockImage: z.string().nullable(),
  policyDigest: z.string().nullable(),
  created: z.string().nullable(),
  shaleVersion: z.string().nullable(),
  source: z.strictObject({ url: z.string().optional(), revision: z.string().optional() }),
  bytes: z.number(),
  layers: z.array(
    z.strictObject({ digest: z.string(), bytes: z.number(), from: z.enum(['base', 'renderedConfig']) }),
  ),
  transitions: z.array(
    z.strictObject({
      from: z.string(),
      base: z.string(),
      actions: z.string(),
      because: z.array(z.string()),
    }),
  ),
  transitionsUnknown: z.string().optional(),
  referrers: z.array(z.strictObject({ artifactType: z.string(), digest: z.string(), bytes: z.number() })),
  signatures: z.number(),
  signedByKey: z.boolean().optional(),
  files: z
    .array(
      z.strictObject({
        path: z.string(),
        type: z.enum(['file', 'directory', 'symlink', 'hardlink']),
        mode: z.string().optional(),
        owner: z.string().optional(),
        bytes: z.number().optional(),
        target: z.string().optional(),
      }),
    )
    .optional(),
});

const imageSide = z.strictObject({
  image: z.string(),
  digest: z.string(),
  platform: z.string(),
  os: z.record(z.string(), z.string()),
  packages: z.number().nullable(),
  kernels: z.array(z.string()),
});
export const ImageDiffOutput = z.strictObject({
  from: imageSide,
  to: imageSide,
  summary: z.string(),
  baseChanges: z.boolean(),
  ...contentsDiff,
  vulnerabilities: vulnerabilityDiff,
  files: z.array(diffs.element.omit({ diff: true })).optional(),
});

const time = z.string();

export const StatusOutput = z.strictObject({
  layering: z.strictObject({
    switch: z.enum(['on', 'off', 'invalid']),
    problems: z.string().optional(),
    builder: z.enum(['running', 'starting', 'absent']),
  }),
  pools: z.array(PoolView),
  builds: z.array(BuildView),
  nodes: z.array(NodeView),
  remarks: z.array(z.string()),
});

export const MaintenanceOutput = z.array(
  z.strictObject({
    node: z.string(),
    by: z.string().optional(),
    reason: z.string().optional(),
    until: time.optional(),
    obstacle: z.string().optional(),
    cordoned: z.boolean(),
  }),
);

export const NodeImageOutput = z.union([
  z.strictObject({ pool: z.string(), image: z.null(), why: z.string() }),
  z.strictObject({
    pool: z.string(),
    image: z.string(),
    digest: z.string(),
    proof: z.enum(['Rollout', 'Rollback', 'None']),
    tag: z.string(),
    unpublished: z.string().optional(),
    ways: z.array(z.strictObject({ name: z.string(), where: z.string(), commands: z.array(z.string()) })),
  }),
]);

export const HistoryOutput = z.array(
  z.strictObject({
    at: time,
    config: z.string(),
    change: z.string(),
    image: z.string().optional(),
    build: z.string().optional(),
    way: z.string(),
    forRollback: z.literal(true).optional(),
    result: z.enum(['Succeeded', 'Failed', 'Interrupted', 'Building']),
    message: z.string().optional(),
    changes: z
      .array(z.strictObject({ subject: z.string(), change, machineConfigs: z.array(z.string()) }))
      .optional(),
    wanted: z.boolean(),
    nodes: z.number(),
    revision: z.strictObject({ number: z.number(), at: time }).optional(),
  }),
);

const explainedUpdate = z.strictObject({
  config: z.string(),
  change: z.string(),
  image: z.string().optional(),
  osImageStream: z.string().optional(),
  causes: z.array(
    z.strictObject({
      machineConfigs: z.array(z.string()),
      change,
      subject: z.string(),
      rule: z.string(),
      actions: z.string(),
    }),
  ),
  actions: z.string(),
  source: z.string(),
});

export const ExplainOutput = z.strictObject({
  node: z.string(),
  pool: z.string(),
  mode: z.enum(['Standard', 'Layered']).optional(),
  config: z.string().optional(),
  image: z.string().optional(),
  osImageStream: z.string().optional(),
  dispute: z.string().optional(),
  state: z.string().optional(),
  what: z.string().optional(),
  failed: z.strictObject({ config: z.string(), advice: z.string() }).optional(),
  tried: z.string().optional(),
  last: explainedUpdate
    .extend({
      result: z.enum(['Succeeded', 'RolledBack', 'Failed']),
      startedAt: time,
      finishedAt: time,
      rebooted: z.boolean(),
      softly: z.literal(true).optional(),
      message: z.string().optional(),
    })
    .optional(),
  next: explainedUpdate.extend({ state: z.string(), what: z.string().optional() }).optional(),
});

export const DoctorOutput = z.array(
  z.strictObject({
    level: z.enum(['ok', 'warning', 'failure']),
    check: z.string(),
    what: z.string(),
    fix: z.string().optional(),
  }),
);

const processVersion = z.strictObject({
  state: z.enum(['absent', 'running']),
  /** Absent for a process that is not running or doesn't report one. */
  version: z.string().optional(),
});

/** `shale version`; with `--client` the client alone. */
export const VersionOutput = z.strictObject({
  client: z.string(),
  operator: processVersion.optional(),
  builder: processVersion.optional(),
  daemons: z.array(z.strictObject({ version: z.string().optional(), nodes: z.array(z.string()) })).optional(),
  warnings: z.array(z.string()).optional(),
});
