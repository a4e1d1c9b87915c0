import type { MachineConfig } from '../../api/machine-config.ts';
import { nodePaths } from '../../api/names.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { linkedPlace } from '../../machineconfig/claim-conflicts.ts';
import { imageObstacles, type Obstacle } from '../../machineconfig/image-obstacles.ts';
import { layeredFiles } from '../../machineconfig/layered-files.ts';
import type { NodeConfig, NodeFile, Owner } from '../../machineconfig/node-config.ts';
import { claimsByPlace, pathClaims } from '../../machineconfig/path-claims.ts';
import { placeInImage } from '../../machineconfig/place-in-image.ts';
import { carriedConfig } from '../../machineconfig/rendered-annotations.ts';
import { unitLinks } from '../../machineconfig/unit-links.ts';
import { unknownTree } from '../../machineconfig/units/unit-tree.ts';
import { formatTmpfiles, type TmpfilesLine } from './tmpfiles.ts';

export type LayerContent =
  | { readonly ok: true; readonly entries: readonly LayerEntry[] }
  | { readonly ok: false; readonly refusals: readonly Obstacle[] };

/**
 * The one layer of an image: everything that a rendered config puts on a node.
 *
 * @param config the rendered config, decoded.
 * @param rendered the rendered config as an object; the image carries it so that a node and `shale image inspect` can
 *   tell what is in it.
 * @param hasPackages whether the base has the config's extensions and kernel already, by a container engine.
 * @returns the layer's entries, or everything that can't be carried.
 */
export function layerContent(config: NodeConfig, rendered: MachineConfig, hasPackages = false): LayerContent {
  const refusals = imageObstacles(config, { hasPackages });
  if (refusals.length > 0) return { ok: false, refusals };
  const lines: TmpfilesLine[] = [];
  const entries: LayerEntry[] = [];
  for (const file of config.files.values()) addFile(file, entries, lines);
  for (const directory of config.directories.values()) {
    addPlaced(directory, {
      image: (path) => entries.push({ type: 'directory', path, mode: directory.mode, ...ids(directory) }),
      state: () => lines.push({ kind: 'directory', ...directory }),
    });
    if (named(directory)) lines.push({ kind: 'ownership', ...directory });
  }
  for (const link of config.links.values()) {
    addPlaced(link, {
      image: (path) =>
        entries.push(
          link.hard
            ? {
                type: 'hardlink',
                path,
                target: linkedPlace(claimsByPlace(pathClaims(config)), link.target).place,
              }
            : { type: 'symlink', path, target: link.target, ...ids(link) },
        ),
      state: () => lines.push({ kind: 'link', path: link.path, target: link.target }),
    });
  }
  entries.push(
    ...[...layeredFiles(config)].map(([path, text]) => textFile(path, text)),
    ...unitLinkEntries(config),
  );
  entries.push(textFile(nodePaths.imageConfig, `${canonicalJson(carriedConfig(rendered))}\n`));
  const fragment = formatTmpfiles(lines);
  if (fragment !== '') entries.push(textFile(nodePaths.tmpfiles, fragment));
  return { ok: true, entries };
}

function addFile(file: NodeFile, entries: LayerEntry[], lines: TmpfilesLine[]): void {
  addPlaced(file, {
    image: (path) => {
      entries.push({ type: 'file', path, mode: file.mode, ...ids(file), content: file.contents });
      if (named(file))
        lines.push({ kind: 'ownership', path, mode: file.mode, user: file.user, group: file.group });
    },
    state: () => lines.push({ kind: 'file', ...file }),
  });
}

function addPlaced(
  { path }: { readonly path: string },
  add: { readonly image: (path: string) => void; readonly state: () => void },
): void {
  const place = placeInImage(path);
  switch (place.kind) {
    case 'image':
      add.image(place.path);
      return;
    case 'state':
      add.state();
      return;
    case 'refused':
      throw new Error(`${path} ${place.why}, and imageObstacles has to say so`);
  }
}

interface Owned {
  readonly user: Owner;
  readonly group: Owner;
}

/** Names other than root are known on the host only; there a tmpfiles.d line sets them. */
function ids({ user, group }: Owned): { readonly uid: number; readonly gid: number } {
  return { uid: 'id' in user ? user.id : 0, gid: 'id' in group ? group.id : 0 };
}

function named({ user, group }: Owned): boolean {
  return [user, group].some((owner) => 'name' in owner && owner.name !== 'root');
}

function unitLinkEntries(config: NodeConfig): LayerEntry[] {
  const { links } = unitLinks(config, unknownTree);
  return links.map(({ path, target }) => ({ type: 'symlink', path, target, uid: 0, gid: 0 }));
}

function textFile(path: string, text: string): LayerEntry {
  return { type: 'file', path, mode: 0o644, uid: 0, gid: 0, content: Buffer.from(text) };
}
