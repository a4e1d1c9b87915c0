import { z } from 'zod';
import { DigestedPullspecSchema } from './references.ts';

const ConfigName = z.string().min(1).max(253);

const RollbackRequest = z.object({
  config: ConfigName,
  image: DigestedPullspecSchema.exactOptional(),
  by: z.string().default(''),
  reason: z.string().default(''),
  at: z.string().default(''),
  /** The pool's target when the rollback was requested; the operator writes it. */
  from: z
    .object({ config: ConfigName, layered: z.boolean(), image: DigestedPullspecSchema.exactOptional() })
    .exactOptional(),
  /** RFC 3339: until when nodes wait for another label of the image, by which they don't reboot; the operator writes it. */
  waitsUntil: z.string().exactOptional(),
});

/** A request to roll a pool back, as its annotation has it (api/names.ts). */
export type RollbackRequest = z.infer<typeof RollbackRequest>;

/** @throws Error that says what of the annotation's text is wrong. */
export function parseRollback(text: string): RollbackRequest {
  return RollbackRequest.parse(JSON.parse(text));
}
