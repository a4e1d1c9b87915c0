import type { DigestedPullspec } from '../../api/references.ts';
import { pathsOfConfigs } from '../host/certificates/owned-paths.ts';
import { keepImagePolicy } from '../os/image-policy/keep-image-policy.ts';
import type { VerifiedImage } from '../os/image-policy/policy-entries.ts';
import { requireSignature } from '../os/require-signature.ts';
import type { Observation } from './step.ts';
import type { StepContext } from './step-context.ts';

/**
 * Has the host's own tools take only signed images from the repositories of the pool, where they pull these images:
 * Shale verifies before they do, and they verify again, also what an admin has them pull. What keeps them from it is
 * reported, and stops nothing.
 *
 * @param images that the cluster signed, the latest last; none takes Shale's entries out of the host's policy.
 * @throws RecordError
 */
export async function policeImages(
  { memory, ports, telemetry, signal }: StepContext,
  observation: Pick<Observation, 'current' | 'journal' | 'osBackend'>,
  images: readonly VerifiedImage[],
): Promise<void> {
  const { root } = ports.host;
  const owned = await pathsOfConfigs(root, observation);
  const isShaleAlone = observation.osBackend.name === 'ostree';
  const { state, written } = await keepImagePolicy({ root, owned }, isShaleAlone ? [] : images);
  if (written.length > 0) {
    await ports.relabel(root, written, signal);
    telemetry.log.info({ files: written, policy: state }, 'Changed the signature policy of the host');
  }
  memory.imagePolicy = state;
}

/**
 * Ensures that the cluster signed an image, before any of it is staged, and has the host's own tools require it from
 * then on.
 *
 * @throws PrepareRefused when it is not signed, or when it is not known with which keys it must be; ApiError,
 *   RegistryError, RecordError.
 */
export async function requireSigned(
  context: StepContext,
  observation: Observation,
  image: DigestedPullspec,
): Promise<void> {
  const { client, ports, settings, signal } = context;
  const check = {
    client,
    namespace: settings.namespace,
    signatures: ports.signatures,
    root: ports.host.root,
    spec: observation.spec,
    signal,
  };
  await policeImages(context, observation, await requireSignature(check, image));
}
