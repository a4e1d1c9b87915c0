import { errorMessage } from '../../api/error-message.ts';
import { requireSignature } from '../os/require-signature.ts';
import { policeImages } from './image-policy.ts';
import type { Observation } from './step.ts';
import type { StepContext } from './step-context.ts';
import { targetOf } from './update.ts';

/**
 * Checks the signature of the image that a fresh node came with, as that of an image is checked before it is staged,
 * and has the host's tools require signatures from then on. If the node goes to another target, that one is checked
 * when it is staged.
 *
 * @returns why the image is not known to be signed; undefined if it is, or needs no signature of this node.
 */
export async function unverifiedBecause(
  context: StepContext,
  observation: Observation,
): Promise<string | undefined> {
  const { client, ports, signal } = context;
  const { namespace } = context.settings;
  const { spec, bootedImage } = observation;
  const target = targetOf(spec);
  if (target.mode !== 'Layered' || target.image !== bootedImage) return undefined;
  const check = { client, namespace, signatures: ports.signatures, root: ports.host.root, spec, signal };
  try {
    await policeImages(context, observation, await requireSignature(check, target.image));
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return errorMessage(error);
  }
}
