import type { NodeConfig, NodeFile } from './node-config.ts';
import type { Subject } from './owners.ts';
import { placeInImage } from './place-in-image.ts';

/** Why a rendered config can't come to a node. */
export interface Obstacle {
  /** What can't have it: an image, where standard mode can, or any node in any mode. */
  readonly hinders: 'image' | 'node';
  /** The path, unit or field of the rendered config. */
  readonly subject: string;
  readonly why: string;
  /** What the MachineConfigs set that have to be changed. */
  readonly involved: readonly Subject[];
}

/** What decides whether a config can be carried: all of it but the contents of its files, which need not be decoded. */
export type ConfigOutline = Omit<
  NodeConfig,
  'name' | 'files' | 'fips' | 'osImageURL' | 'marks' | 'passwordHashes'
> & {
  readonly files: ReadonlyMap<string, Omit<NodeFile, 'contents'>>;
  readonly passwordHashes: ReadonlyMap<string, unknown>;
};

/** setuid and setgid (stat(2)); an image hands such a file to every node, so it has to be asked for on purpose. */
const SET_ID_BITS = 0o6000;

/**
 * Everything that no image, or no node, can carry of a rendered config. Who renders refuses what hinders nodes; who builds an
 * image, or predicts that, refuses all of it.
 *
 * @param hasPackages whether the base has the config's extensions and kernel already, by a container engine.
 */
export function imageObstacles(
  config: ConfigOutline,
  { hasPackages = false }: { readonly hasPackages?: boolean } = {},
): readonly Obstacle[] {
  return [...refusedFields(config, hasPackages), ...refusedPaths(config)];
}

/** What no layer can bring about: these need a container engine, an installation, or would publish a secret. */
function refusedFields(config: ConfigOutline, hasPackages: boolean): Obstacle[] {
  const obstacles: Obstacle[] = [];
  if (config.passwordHashes.size > 0) {
    const users = [...config.passwordHashes.keys()];
    obstacles.push({
      hinders: 'image',
      subject: `passwordHash of ${users.join(', ')}`,
      why: 'everyone who can pull the image could read it; use SSH keys, or keep the pool in standard mode',
      involved: users.map((subject) => ({ kind: 'sshKey', subject })),
    });
  }
  if (config.kernelType !== 'default' && !hasPackages) {
    obstacles.push(
      ofField('kernelType', `${config.kernelType} requires a container engine to install packages`),
    );
  }
  if (config.extensions.length > 0 && !hasPackages) {
    obstacles.push(ofField('extensions', 'require a container engine to install packages'));
  }
  return obstacles;
}

function ofField(subject: string, why: string): Obstacle {
  return { hinders: 'image', subject, why, involved: [{ kind: 'field', subject }] };
}

function refusedPaths({ files, directories, links }: ConfigOutline): Obstacle[] {
  return [
    ...[...files.values()].flatMap(({ path, mode }) => ofPath(path, whyNotMode(mode) ?? whyNotPlace(path))),
    ...[...directories.keys(), ...links.keys()].flatMap((path) => ofPath(path, whyNotPlace(path))),
  ];
}

function ofPath(subject: string, why: string | undefined): Obstacle[] {
  return why === undefined ? [] : [{ hinders: 'image', subject, why, involved: [{ kind: 'file', subject }] }];
}

function whyNotMode(mode: number): string | undefined {
  return (mode & SET_ID_BITS) === 0
    ? undefined
    : `mode ${mode.toString(8)} sets the user or group ID on execution`;
}

function whyNotPlace(path: string): string | undefined {
  const place = placeInImage(path);
  return place.kind === 'refused' ? place.why : undefined;
}
