import { z } from 'zod';
import { UpdatePlan } from '../../api/machine-config-node.ts';
import { present } from '../../api/present.ts';
import { Current } from '../records/current.ts';
import { stateRecord } from '../records/durable-json.ts';
import type { PreparedUpdate } from '../steps/update.ts';

/**
 * A target that is the node's next boot, whole and watched over, and waits for a reboot by somebody else. It is no
 * entry of the journal: nothing of the running system was changed, and the node may be given another target at any
 * time.
 */
const ArmedBoot = z.object({
  version: z.literal(1),
  plan: UpdatePlan,
  next: Current,
  /** Of the prepared update, so that a daemon that starts again need not prepare it again. */
  policyDigest: z.string().exactOptional(),
  softRebootAllowed: z.boolean(),
  /** The boot in which it was armed. */
  bootID: z.string(),
  /** What the OS tool calls the deployment. */
  deployment: z.string(),
  /** Digest of the running /etc that was merged into it. */
  etc: z.string(),
});
export type ArmedBoot = z.infer<typeof ArmedBoot>;

/** The steps of a node whose next boot may be its target before it is granted. */
export type ArmingStep =
  /** Make the target the next boot, and reboot nothing. */
  | { readonly kind: 'arm'; readonly update: PreparedUpdate }
  | { readonly kind: 'stayArmed'; readonly update: PreparedUpdate; readonly armed: ArmedBoot }
  /** Have the node boot what it runs: what was armed may no longer be, or is no longer what was armed. */
  | { readonly kind: 'disarm' };

const record = stateRecord('armed-boot.json', ArmedBoot);

/** There is none where the next boot is what the node runs. */
export const { read: readArmedBoot, remove: removeArmedBoot } = record;

/** Writes the record, whole or not at all, and durably. */
export async function writeArmedBoot(
  root: string,
  { plan, next, policyDigest, softRebootAllowed }: PreparedUpdate,
  boot: Pick<ArmedBoot, 'bootID' | 'deployment' | 'etc'>,
): Promise<void> {
  const update = { plan, next, ...present({ policyDigest }), softRebootAllowed };
  const armed: ArmedBoot = { version: 1, ...update, ...boot };
  await record.write(root, armed);
}

/** @returns the update that was armed, as it was prepared. */
export function preparedOf({ plan, next, policyDigest, softRebootAllowed }: ArmedBoot): PreparedUpdate {
  return { plan, next, policyDigest, softRebootAllowed };
}
