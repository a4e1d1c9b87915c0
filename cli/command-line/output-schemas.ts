import { z } from 'zod';
import { DisruptionAction } from '../../api/disruption-action.ts';
import { SEVERITIES } from '../../api/vulnerabilities.ts';
import { PACKAGE_FORMATS } from '../../image/contents/package.ts';
import { PACKAGE_CHANGES } from '../../image/contents/package-changes.ts';
import { COSTS, type Cost } from '../../predict/cost.ts';

/**
 * Schemas of what `-o json` and `-o yaml` print of values that rooms below compute, such as plans. Those of other
 * commands are beside them, and their types derive from them. The output is validated against its schema (print-as.ts).
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

const names = z.array(z.string()).readonly();
const sides = z.strictObject({ added: names, removed: names });
const accounts = z
  .array(z.strictObject({ name: z.string(), from: z.number().optional(), to: z.number().optional() }))
  .readonly();

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
  allocated: sides,
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

/** One of two images that are compared. */
const imageSide = z.strictObject({
  image: z.string(),
  digest: z.string(),
  platform: z.string(),
  /** os-release(5): ID, NAME, PRETTY_NAME and VERSION_ID. */
  os: z.record(z.string(), z.string()),
  /** The number of its packages; null where they are not known. */
  packages: z.number().nullable(),
  kernels: names,
});
export type ImageSide = z.infer<typeof imageSide>;
export const ImageDiffOutput = z.strictObject({
  from: imageSide,
  to: imageSide,
  summary: z.string(),
  baseChanges: z.boolean(),
  ...contentsDiff,
  vulnerabilities: vulnerabilityDiff,
  files: z.array(diffs.element.omit({ diff: true })).optional(),
});
