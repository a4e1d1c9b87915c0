import { z } from 'zod';

const TryRequest = z.object({
  /** The same for all MachineConfigs that were applied together. */
  id: z.string().min(1).max(64),
  /** RFC 3339: the change is undone then. */
  until: z.iso.datetime(),
  by: z.string().default(''),
  at: z.string().default(''),
  /** What the MachineConfig is while nobody edits it: its generation, and a digest of its labels and annotations. */
  generation: z.int().min(0),
  metadata: z.string(),
  /** The MachineConfig before, as gzip in base64; absent: there was none. */
  before: z.base64().exactOptional(),
});

/** A change that is undone unless it is confirmed, as the annotation of a MachineConfig has it (api/names.ts). */
export type TryRequest = z.infer<typeof TryRequest>;

/** @throws Error that says what of the annotation's text is wrong. */
export function parseTry(text: string): TryRequest {
  return TryRequest.parse(JSON.parse(text));
}
