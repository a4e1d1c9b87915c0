import { z } from 'zod';
import { DigestedPullspecSchema } from '../../api/references.ts';

const TargetName = z.object({
  config: z.string().min(1).max(253),
  image: DigestedPullspecSchema.exactOptional(),
});

const RollbackRequest = z.object({
  ...TargetName.shape,
  by: z.string().default(''),
  reason: z.string().default(''),
  at: z.string().default(''),
  from: TargetName.exactOptional(),
});

/** A wish that a pool goes back, as its annotation has it (api/names.ts). */
export type RollbackRequest = z.infer<typeof RollbackRequest>;

/** @throws Error that says what of the annotation's text is wrong. */
export function parseRollback(text: string): RollbackRequest {
  return RollbackRequest.parse(JSON.parse(text));
}
