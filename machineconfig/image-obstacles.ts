import { claimConflicts, hardLinkObstacle, type NodeObstacle, type Obstacle } from './claim-conflicts.ts';
import { isOwnerName, OWNER_NAME_EXPECTED, whyNotCleanPath } from './ignition/validate-paths.ts';
import { bootEntryFault } from './kernel-arguments.ts';
import type { Owner } from './node-config.ts';
import { type ConfigOutline, claimsByPlace, type PathClaim, pathClaims } from './path-claims.ts';
import { placeInImage, realPlace } from './place-in-image.ts';
import { quote } from './problem.ts';

/** setuid and setgid (stat(2)); an image hands such a file to every node, so it has to be asked for on purpose. */
const SET_ID_BITS = 0o6000;

/**
 * Everything that no image, or no node, can carry of a rendered config. Who renders refuses what hinders nodes; who
 * builds an image, or predicts that, refuses all of it.
 *
 * @param hasPackages whether the base has the config's extensions and kernel already, by a container engine.
 */
export function imageObstacles(
  config: ConfigOutline,
  { hasPackages = false }: { readonly hasPackages?: boolean } = {},
): readonly Obstacle[] {
  const claims = pathClaims(config);
  const byPlace = claimsByPlace(claims);
  return [
    ...publishedSecrets(config),
    ...(hasPackages ? [] : missingPackages(config)),
    ...brokenBootEntry(config),
    ...claims.flatMap((claim) => pathObstacle(claim, config) ?? []),
    ...claims.flatMap((claim) => (claim.type === 'hardlink' ? (hardLinkObstacle(byPlace, claim) ?? []) : [])),
    ...claimConflicts(claims.filter((claim) => !isPointless(claim, claims))),
  ];
}

/**
 * @returns what no node can have in any mode. A pool with such a config isn't rendered. It is checked there and not
 *   where a rendered config is read: nodes have to be able to leave a config from before this check.
 */
export function nodeObstacles(config: ConfigOutline): readonly NodeObstacle[] {
  return imageObstacles(config).filter((obstacle) => obstacle.hinders === 'node');
}

function publishedSecrets({ passwordHashes }: ConfigOutline): Obstacle[] {
  const users = [...passwordHashes.keys()];
  if (users.length === 0) return [];
  return [
    {
      hinders: 'image',
      subject: `passwordHash of ${users.join(', ')}`,
      why: 'everyone who can pull the image could read it; use SSH keys, or keep the pool in standard mode',
      involved: users.map((subject) => ({ kind: 'sshKey', subject })),
    },
  ];
}

/** No layer can bring about what needs a container engine. */
function missingPackages({ kernelType, extensions }: ConfigOutline): Obstacle[] {
  return [
    ...(kernelType === 'default'
      ? []
      : [ofField('kernelType', `${kernelType} requires a container engine to install packages`)]),
    ...(extensions.length === 0
      ? []
      : [ofField('extensions', 'require a container engine to install packages')]),
  ];
}

/** Each argument is judged where its MachineConfig is read; together they can be too many. */
function brokenBootEntry({ kernelArguments }: ConfigOutline): Obstacle[] {
  const fault = bootEntryFault(kernelArguments.join(' '));
  if (fault === undefined) return [];
  const subject = 'kernelArguments';
  const { reason: why, expected } = fault;
  return [{ hinders: 'node', subject, why, expected, involved: [{ kind: 'field', subject }] }];
}

function ofField(subject: string, why: string): Obstacle {
  return { hinders: 'image', subject, why, involved: [{ kind: 'field', subject }] };
}

/**
 * What is there on every host, with things of the host in it or behind it; by the place behind the host's own links.
 */
const HOST_DIRECTORIES: ReadonlySet<string> = new Set(
  [
    ...[
      '/boot',
      '/dev',
      '/etc',
      '/etc/systemd',
      '/etc/systemd/system',
      '/proc',
      '/run',
      '/sys',
      '/sysroot',
      '/tmp',
    ],
    ...['/usr', '/usr/bin', '/usr/lib', '/usr/lib/systemd', '/usr/lib/systemd/system', '/usr/share'],
    ...['/var', '/var/lib', '/var/log', '/var/tmp'],
    ...['/home', '/media', '/mnt', '/opt', '/root', '/srv', '/usr/local'],
  ].map(realPlace),
);

/** @returns what is wrong with a path by itself, the first thing; undefined where nothing is. */
function pathObstacle(claim: PathClaim, config: ConfigOutline): Obstacle | undefined {
  const { path } = claim;
  const problem = impossiblePath(claim) ?? impossibleOwner(claim, config);
  if (problem !== undefined)
    return { hinders: 'node', subject: path, ...problem, involved: claim.subjects() };
  const why = whyNotMode(claim, config) ?? whyNotPlace(path) ?? whyNotWhiteout(path);
  return why === undefined ? undefined : { hinders: 'image', subject: path, why, involved: claim.subjects() };
}

/**
 * Without a directory such as /usr there is nothing at all; that Shale's own files can't be there either goes without
 * saying.
 */
function isPointless({ place, origin, subjects }: PathClaim, claims: readonly PathClaim[]): boolean {
  return (
    origin === 'file of an image' &&
    subjects().length === 0 &&
    claims.some(
      (other) =>
        other.type !== 'directory' &&
        HOST_DIRECTORIES.has(other.place) &&
        place.startsWith(`${other.place}/`),
    )
  );
}

interface Impossible {
  readonly why: string;
  readonly expected: string;
}

function impossiblePath({ path, place, type, what }: PathClaim): Impossible | undefined {
  // Of a name of a unit and what systemd adds to it nobody has looked at the length.
  const why = path === '' || path === '/' ? 'is the root directory' : whyNotCleanPath(path);
  if (why !== undefined) return { why, expected: 'an absolute path without empty, "." or ".." elements' };
  // What is no Unicode can't be written as UTF-8: two names would be one.
  if (!path.isWellFormed()) {
    return { why: `${quote(path)} has half of a surrogate pair`, expected: 'a path in Unicode' };
  }
  return type !== 'directory' && HOST_DIRECTORIES.has(place)
    ? { why: `is ${what} where every host has a directory`, expected: 'a path below it' }
    : undefined;
}

/** A rendered config that no MachineConfig was validated for may have any. */
function impossibleOwner({ path, origin }: PathClaim, config: ConfigOutline): Impossible | undefined {
  if (origin !== 'entry') return undefined;
  const { files, directories, links } = config;
  const entry = files.get(path) ?? directories.get(path) ?? links.get(path);
  const odd = entry === undefined ? undefined : [entry.user, entry.group].find(isImpossible);
  return odd === undefined
    ? undefined
    : { why: `${quote(ownerText(odd))} is not the name of a user or group`, expected: OWNER_NAME_EXPECTED };
}

function isImpossible(owner: Owner): boolean {
  return 'name' in owner && !isOwnerName(owner.name);
}

function ownerText(owner: Owner): string {
  return 'name' in owner ? owner.name : String(owner.id);
}

function whyNotMode({ path, type, origin }: PathClaim, { files }: ConfigOutline): string | undefined {
  const mode = type === 'file' && origin === 'entry' ? (files.get(path)?.mode ?? 0) : 0;
  return (mode & SET_ID_BITS) === 0
    ? undefined
    : `mode ${mode.toString(8)} sets the user or group ID on execution`;
}

function whyNotPlace(path: string): string | undefined {
  const place = placeInImage(path);
  return place.kind === 'refused' ? place.why : undefined;
}

/** A directory of that name would delete another of the base, too (OCI image specification, layer.md, "Whiteouts"). */
function whyNotWhiteout(path: string): string | undefined {
  const [, name] = /\/(\.wh\.[^/]*)/.exec(path) ?? [];
  return name === undefined
    ? undefined
    : `${name} is a whiteout in an image, which deletes ${quote(name.slice('.wh.'.length))} beside it; use another name`;
}
