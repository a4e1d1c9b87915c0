import { annotations, imageLabels } from '../../api/names.ts';
import { imageRebootsBecause } from '../../disruption/image-reboots.ts';
import { findTransition, parseTransitionLabel } from '../../disruption/transitions.ts';
import { RegistryError } from '../../image/registry/registry-error.ts';
import type { FetchedImage, NodeDeployment } from '../os/backend.ts';
import { basesOf, type Current, PrepareRefused } from '../records/current.ts';
import {
  fetchTarget,
  type Preparation,
  type Requirements,
  refuseChangedDisk,
  requireReboot,
  withRebootChoice,
} from './preparation.ts';
import { requirementsOfOptIn } from './prepare-opt-in.ts';
import { contentOfImage, refuseUnknownOwners, refuseUnwritable } from './refuse-unwritable.ts';
import { requireSignature } from './require-signature.ts';
import { imageChange, type PreparedUpdate, reboots, type Target } from './update.ts';

type LayeredTarget = Extract<Target, { mode: 'Layered' }>;

/**
 * Brings a layered image to the disk and reads from its label what it asks of this node. Not disruptive.
 *
 * @throws PrepareRefused when the image is not in the registry or not signed, or its labels do not name the config that the operator assigned, for a disk
 *   that somebody has changed; and what staging throws.
 */
export async function prepareLayered(
  preparation: Preparation,
  target: LayeredTarget,
): Promise<PreparedUpdate> {
  try {
    return await prepareImage(preparation, target);
  } catch (error) {
    const missing = missingIn(error);
    throw missing === undefined ? error : notThere(preparation, target, missing);
  }
}

/** @returns what a registry says that doesn't have something; undefined for every other failure. */
function missingIn(error: unknown): RegistryError | undefined {
  if (error instanceof RegistryError && error.status === 404) return error;
  return error instanceof Error ? missingIn(error.cause) : undefined;
}

/** Somebody has to act: trying again brings nothing back. */
function notThere({ spec }: Preparation, { image }: LayeredTarget, error: RegistryError): PrepareRefused {
  const rebuild = `kubectl annotate machineosconfig ${spec.pool.name} ${annotations.rebuild}=VALUE --overwrite`;
  return new PrepareRefused(
    `${image} is not in the registry, or the node's pull secret doesn't show it: ${error.message}. If it was deleted there, build it again: ${rebuild}, with a value that it has not had`,
    { cause: error },
  );
}

async function prepareImage(preparation: Preparation, target: LayeredTarget): Promise<PreparedUpdate> {
  const { current, spec } = preparation;
  await refuseChangedDisk(preparation);
  const change = imageChange(current, target);
  await preparation.policeImages(await requireSignature(preparation, target.image));
  const accept = (labels: NodeDeployment['labels']) => refuseOtherConfig(labels, target);
  const fetched = await fetchTarget(preparation, change, { evenIfBooted: false, accept });
  refuseOtherConfig(fetched.labels, target);
  await refuseUnfit(preparation, target, fetched);
  const actions = await asHostTakes(preparation, target, await actionsOf(preparation, target, fetched));
  const required = reboots({ plan: actions })
    ? await withRebootChoice(
        preparation,
        actions,
        await fetchTarget(preparation, change, { evenIfBooted: true, accept }),
      )
    : actions;
  return {
    plan: { config: target.config, image: target.image, staged: true, ...required },
    next: {
      version: 1,
      mode: 'Layered',
      config: target.config,
      image: target.image,
      ...basesOf(fetched.labels),
    },
    policyDigest: spec.policyDigest,
    softRebootAllowed: spec.softReboot ?? false,
  };
}

/** Whoever writes the target doesn't decide what an image is: an image that doesn't name the target's config is not it. */
function refuseOtherConfig(labels: NodeDeployment['labels'], { config, image }: LayeredTarget): void {
  const built = labels[imageLabels.renderedConfig];
  if (built === config) return;
  throw new PrepareRefused(
    built === undefined
      ? `${image} has no label ${imageLabels.renderedConfig}; expected ${config}: it was not built by Shale, or its registry can't be read`
      : `${image} was built from ${built}; expected ${config}`,
  );
}

/** What would fail on this node is refused here, and not once the node is drained. */
async function refuseUnfit(
  preparation: Preparation,
  { config }: LayeredTarget,
  { labels }: FetchedImage,
): Promise<void> {
  const { current } = preparation;
  const content = await contentOfImage(preparation, config);
  if (content === undefined) return;
  const { baseImage } = basesOf(labels);
  if (baseImage !== undefined && baseImage === current?.baseImage) {
    await refuseUnknownOwners(preparation, content);
  }
  await refuseUnwritable(preparation, content);
}

/** A host that can't apply an image live takes a new one by a reboot, also where the change itself needs none. */
async function asHostTakes(
  { backend, signal }: Preparation,
  { image }: LayeredTarget,
  asked: Requirements,
): Promise<Requirements> {
  const why = imageRebootsBecause(await backend.tool(signal));
  if (why === undefined || reboots({ plan: asked })) return asked;
  const { booted } = await backend.status(signal);
  return booted.image === image ? asked : { ...asked, ...requireReboot(why), causes: asked.causes };
}

async function actionsOf(
  preparation: Preparation,
  target: LayeredTarget,
  { labels }: FetchedImage,
): Promise<Requirements> {
  const { current, stuck, spec, backend, signal } = preparation;
  if (stuck !== undefined) {
    return requireReboot(`the live update to ${stuck.plan.config} was started and could not be finished`);
  }
  if (current === undefined) {
    const { booted } = await backend.status(signal);
    return booted.image === target.image
      ? { actions: [], causes: [], source: 'the node has booted this image' }
      : requireReboot('the node has no config that a transition could start from');
  }
  if (current.mode === 'Standard') {
    return requirementsOfOptIn(preparation, current, { change: imageChange(current, target), labels });
  }
  const label = parseTransitionLabel(labels[imageLabels.disruption]);
  const transition = findTransition(label, stateOf(current), spec.policyDigest);
  return transition.kind === 'known'
    ? { actions: [...transition.actions], causes: [...transition.causes], source: 'the label of the image' }
    : requireReboot(transition.why);
}

function stateOf({ config, baseImage = '' }: Current): { readonly config: string; readonly base: string } {
  return { config, base: baseImage };
}
