import { posix } from 'node:path';
import { nodePaths } from '../api/names.ts';
import { type UnitConfig, unitFiles } from './configured-units.ts';
import { layeredFiles } from './layered-files.ts';
import type { NodeConfig, NodeFile, NodeUnit } from './node-config.ts';
import type { Subject } from './owners.ts';
import { realPlace } from './place-in-image.ts';
import { unitLinks } from './unit-links.ts';
import { unknownTree } from './units/unit-tree.ts';

/**
 * A rendered config without the contents of its files: enough to decide where what goes, and nothing has to be decoded.
 */
export type ConfigOutline = Pick<
  NodeConfig,
  'directories' | 'links' | 'units' | 'sshKeys' | 'kernelArguments' | 'kernelType' | 'extensions'
> & {
  readonly files: ReadonlyMap<string, Omit<NodeFile, 'contents'>>;
  readonly passwordHashes: ReadonlyMap<string, unknown>;
};

/** One thing that a config puts at a path. */
export interface PathClaim {
  readonly path: string;
  /** The path behind the links that every image-based host has. */
  readonly place: string;
  readonly type: 'file' | 'directory' | 'symlink' | 'hardlink';
  /** With its article, such as `a drop-in of unit a.service`. */
  readonly what: string;
  /**
   * What it is for: an entry that somebody wrote down, a unit's text, a link that enables or masks one, or Shale's own.
   */
  readonly origin: 'entry' | 'unit text' | 'unit link' | 'keys in a home' | 'file of an image';
  /** A link's target. */
  readonly target?: string;
  /** @returns what MachineConfigs set it by; only asked for in a problem. */
  readonly subjects: () => readonly Subject[];
}

/**
 * @returns everything that a config puts on a node in either mode: its entries, its units' texts, drop-ins and links,
 *   its SSH keys where each mode has them, and the files that an image has besides.
 */
export function pathClaims(config: ConfigOutline): readonly PathClaim[] {
  return [
    ...[...config.files.keys()].map((path) => entryClaim(path, 'file', 'a file')),
    ...[...config.directories.keys()].map((path) => entryClaim(path, 'directory', 'a directory')),
    ...[...config.links.values()].map(({ path, target, hard }) =>
      hard
        ? entryClaim(path, 'hardlink', 'a hard link', target)
        : entryClaim(path, 'symlink', 'a symbolic link', target),
    ),
    ...[...config.units.values()].flatMap(textClaims),
    ...linkClaims(config),
    ...[...config.sshKeys.keys()].map(keysInHome),
    ...imageFileClaims(config),
  ];
}

/**
 * @returns what a config puts at each place; of several the first, which is an entry of the config if one of them is.
 */
export function claimsByPlace(claims: readonly PathClaim[]): ReadonlyMap<string, PathClaim> {
  const byPlace = new Map<string, PathClaim>();
  for (const claim of claims) if (!byPlace.has(claim.place)) byPlace.set(claim.place, claim);
  return byPlace;
}

function entryClaim(path: string, type: PathClaim['type'], what: string, target?: string): PathClaim {
  return {
    path,
    place: realPlace(path),
    type,
    what,
    origin: 'entry',
    ...(target !== undefined && { target }),
    subjects: () => [{ kind: 'file', subject: path }],
  };
}

function textClaims(unit: NodeUnit): PathClaim[] {
  return [...unitFiles(unit).keys()].map((path) => ({
    path,
    place: realPlace(path),
    type: 'file',
    origin: 'unit text',
    what:
      posix.basename(path) === unit.name ? `the file of unit ${unit.name}` : `a drop-in of unit ${unit.name}`,
    subjects: () => [unitSubject(unit)],
  }));
}

function linkClaims(config: ConfigOutline): PathClaim[] {
  const units = unitsOf(config);
  return unitLinks(units, unknownTree).links.map(({ path, target }) => ({
    path,
    place: realPlace(path),
    type: 'symlink',
    origin: 'unit link',
    target,
    what: `a link of unit ${posix.basename(target === '/dev/null' ? path : target)}`,
    subjects: () => [...units.units.values()].filter((unit) => links(units, unit, path)).map(unitSubject),
  }));
}

/** @returns whether a unit by itself has a link; Also= may need the text of another unit of the config. */
function links(config: UnitConfig, { name }: NodeUnit, path: string): boolean {
  const others = [...config.units].map(([other, unit]) => {
    const { enabled: _not, ...rest } = unit;
    return [other, other === name ? unit : { ...rest, masked: false }] as const;
  });
  const alone = unitLinks({ ...config, units: new Map(others) }, unknownTree);
  return alone.links.some((link) => link.path === path);
}

/** The texts of units that are files of the config are not decoded: their links are left out. */
function unitsOf({ units, files, directories, links }: ConfigOutline): UnitConfig {
  const withoutText = [...files].map(([path, file]) => [path, { ...file, contents: NOTHING }] as const);
  return { units, directories, links, files: new Map(withoutText) };
}

const NOTHING = new Uint8Array();

function unitSubject({ name }: NodeUnit): Subject {
  return { kind: 'unit', subject: name };
}

/**
 * Where standard mode writes the keys of a user (daemon/content/entries/desired-tree.ts). Only a node knows its homes;
 * these are those of useradd(8) and of root.
 */
function keysInHome(user: string): PathClaim {
  const path = posix.join(user === 'root' ? '/root' : `/home/${user}`, '.ssh/authorized_keys.d/ignition');
  return {
    path,
    place: realPlace(path),
    type: 'file',
    origin: 'keys in a home',
    what: `the file with the SSH keys of ${user}`,
    subjects: () => [{ kind: 'sshKey', subject: user }],
  };
}

/** In an image of any config; daemons read the fragment under either name. */
const OWN_FILES = [nodePaths.imageConfig, nodePaths.tmpfiles, nodePaths.formerTmpfiles];

/** What an image has besides what is written down: Shale's own files. */
function imageFileClaims(config: ConfigOutline): PathClaim[] {
  // Their texts are claimed already, and only those without one are in a preset.
  const units = new Map(
    [...config.units]
      .filter(([, { contents }]) => contents === undefined)
      .map(([name, unit]) => [name, { ...unit, dropins: new Map<string, string>() }]),
  );
  const own = [...layeredFiles({ ...config, ...unitsOf(config), units }).keys(), ...OWN_FILES];
  return own.map((path) => ({
    path,
    place: realPlace(path),
    type: 'file',
    origin: 'file of an image',
    what: 'a file of Shale in every image',
    ...ofImageFile(path, config),
  }));
}

function ofImageFile(
  path: string,
  { units, sshKeys }: ConfigOutline,
): Pick<PathClaim, 'subjects'> & Partial<Pick<PathClaim, 'what'>> {
  switch (path) {
    case nodePaths.imageConfig:
    case nodePaths.tmpfiles:
    case nodePaths.formerTmpfiles:
      return { subjects: () => [] };
    case nodePaths.kernelArguments:
      return {
        what: 'the file with the kernel arguments in an image',
        subjects: () => [{ kind: 'field', subject: 'kernelArguments' }],
      };
    case nodePaths.sshdConfig:
      return {
        what: 'the file by which sshd in an image finds SSH keys',
        subjects: () => [...sshKeys.keys()].map((subject) => ({ kind: 'sshKey', subject })),
      };
  }
  const user = posix.basename(path);
  if (posix.dirname(path) === nodePaths.authorizedKeysDirectory && sshKeys.has(user)) {
    return {
      what: `the file with the SSH keys of ${user} in an image`,
      subjects: () => [{ kind: 'sshKey', subject: user }],
    };
  }
  return {
    what: 'the preset of units in an image',
    subjects: () => [...units.values()].filter(({ enabled }) => enabled !== undefined).map(unitSubject),
  };
}
