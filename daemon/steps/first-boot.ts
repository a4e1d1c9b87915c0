import { errorMessage } from '../../api/error-message.ts';
import { requireSigned } from './image-policy.ts';
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
  const { spec, bootedImage } = observation;
  const target = targetOf(spec);
  if (target.mode !== 'Layered' || target.image !== bootedImage) return undefined;
  try {
    await requireSigned(context, observation, target.image);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    return errorMessage(error);
  }
}
