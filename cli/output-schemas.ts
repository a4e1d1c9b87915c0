import { z } from 'zod';
import { DisruptionAction } from '../api/disruption-action.ts';

/**
 * What `-o json` prints. Scripts build on it: fields are added, and never renamed or taken away. docs/reference/cli.md
 * tells of each.
 */
const problems = z.array(z.string());

const Cause = z.strictObject({
  subject: z.string(),
  kind: z.enum(['file', 'unit', 'sshKey', 'field']),
  change: z.enum(['added', 'changed', 'removed']),
  rule: z.string(),
  actions: z.array(DisruptionAction),
});

export const PlanOutput = z.array(
  z.union([
    z.strictObject({ pool: z.string(), problems }),
    z.strictObject({
      pool: z.string(),
      from: z.string().optional(),
      to: z.string(),
      actions: z.array(DisruptionAction),
      causes: z.array(Cause),
      nodes: z.number().optional(),
      warnings: z.array(z.string()).optional(),
    }),
  ]),
);

export const DiffOutput = z.array(
  z.union([
    z.strictObject({ pool: z.string(), problems }),
    z.strictObject({
      pool: z.string(),
      from: z.string().optional(),
      to: z.string(),
      changes: z.array(
        z.strictObject({
          kind: z.enum(['file', 'directory', 'link', 'unit', 'sshKey', 'passwordHash', 'field']),
          subject: z.string(),
          change: z.enum(['added', 'changed', 'removed']),
          diff: z.string(),
        }),
      ),
    }),
  ]),
);

export const ValidateOutput = z.strictObject({ valid: z.boolean(), problems });
