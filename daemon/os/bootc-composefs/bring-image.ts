import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { isThere } from '../../files/tree-entry.ts';
import type { StageOptions } from '../backend.ts';
import { bootcSwitch } from '../bootc/bootc.ts';
import { keepDescription } from '../image-tool/described-images.ts';
import { withPullProgress } from '../image-tool/pull-progress.ts';
import { demandsSignatures, sharePullSecret } from '../image-tool/pull-settings.ts';
import type { OsHost } from '../os-host.ts';
import { requireSpace, type SourceLayer, spaceNeeded } from '../ostree/image-source.ts';

/**
 * Has bootc pull an image that no deployment is of, and stage it in place of what is staged.
 *
 * @param context `stateDirectory`: where the records of images lie.
 * @param before called once the image is accepted and there is room for it, before bootc is.
 * @throws OsCommandError, and what the source and `accept` throw.
 */
export async function bringIntoComposefs(
  context: OsHost & { readonly stateDirectory: string },
  image: DigestedPullspec,
  { accept, onProgress = () => undefined, signal }: StageOptions,
  before: () => Promise<void>,
): Promise<void> {
  const { root, sysroot, source, run, pullSecretFile } = context;
  const described = await source.open(image, signal);
  await keepDescription(context, image, described);
  accept?.(described.labels);
  const missing: SourceLayer[] = [];
  for (const layer of described.layers) if (!(await hasLayer(sysroot, layer))) missing.push(layer);
  await requireSpace(sysroot, spaceNeeded(missing));
  await sharePullSecret(root, pullSecretFile);
  await before();
  const arrived = async () => {
    const there = new Set<SourceLayer>();
    for (const layer of missing) if (await hasLayer(sysroot, layer)) there.add(layer);
    return (layer: SourceLayer) => there.has(layer);
  };
  const mustBeSigned = await demandsSignatures(root);
  await withPullProgress({ layers: missing, arrived, onProgress, signal }, () =>
    bootcSwitch(run, image, { mustBeSigned, signal }),
  );
}

/** bootc keeps a layer by its uncompressed digest as soon as it is whole (composefs-oci, layer_identifier). */
function hasLayer(sysroot: string, { diffId }: Pick<SourceLayer, 'diffId'>): Promise<boolean> {
  return isThere(path.join(sysroot, 'composefs/streams', `oci-layer-${diffId}`));
}
