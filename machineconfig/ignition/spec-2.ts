import { present } from '../../api/present.ts';
import type {
  IgnitionConfig,
  IgnitionFile,
  IgnitionOwner,
  PasswdUser,
  PathEntry,
  Resource,
  Unit,
} from './config.ts';
import { readBySchema } from './read.ts';
import type { Report } from './report.ts';
import {
  ignition2,
  type Spec2Config,
  type Spec2File,
  type Spec2PathEntry,
  type Spec2Resource,
  type Spec2Unit,
  type Spec2User,
} from './schema-2.ts';

export type Spec2Minor = 0 | 1 | 2;

/**
 * Reads an Ignition 2 config and translates it to 3.5 with MCO's rules (removeIgnDuplicateFilesUnitsUsers, then
 * ign-converter's v23tov30): of several entries for a file or unit the last one wins, drop-ins of a unit and keys of a
 * user are collected, and files and units come out last first.
 *
 * @returns the translated config; what MCO refuses to translate is in the report.
 */
export function translateSpec2(raw: unknown, minor: Spec2Minor, report: Report): IgnitionConfig {
  const old = readBySchema(ignition2, raw, { major: 2, minor }, report);
  refuseUntranslatable(old, report);
  const { storage = {}, passwd = {}, systemd = {}, ignition } = old;
  const { files = [], directories = [], links = [], disks = [], raid = [] } = storage;
  const users = translateUsers(passwd.users ?? [], minor);
  return {
    ignition: {
      version: ignition.version,
      config: {
        merge: (ignition.config?.append ?? []).map((reference) => translateReference(reference)),
        ...(ignition.config?.replace && { replace: translateReference(ignition.config.replace) }),
      },
      ...(ignition.security && { security: ignition.security }),
      ...(ignition.timeouts && { timeouts: ignition.timeouts }),
    },
    passwd: { groups: passwd.groups ?? [], users },
    storage: {
      files: lastOfEach(files, (file) => file.path).map((file) => translateFile(file, minor)),
      directories: directories.map((directory) => ({
        ...translatePathEntry(directory),
        ...modeOf(directory.mode, minor),
      })),
      links: links.map((link) => ({
        ...translatePathEntry(link),
        ...present({ target: link.target }),
        ...(link.hard && { hard: true }),
      })),
      disks: disks.map(({ device, wipeTable }) => ({
        device,
        ...(wipeTable && { wipeTable }),
        partitions: [],
      })),
      raid,
    },
    systemd: { units: translateUnits(systemd.units ?? []) },
  };
}

/** What has no counterpart in spec 3, or what MCO never supported. */
function refuseUntranslatable(old: Spec2Config, report: Report): void {
  const { storage = {}, passwd = {}, networkd = {}, systemd = {} } = old;
  if ((networkd.units ?? []).length > 0) {
    report.problem(
      '$.networkd.units',
      'can not be translated to Ignition 3',
      'files in /etc/systemd/network',
    );
  }
  refuseEach(passwd.users, '$.passwd.users', report, (user) =>
    user.name === 'core' ? undefined : ['is not the user core', 'the user core alone, as in MCO'],
  );
  refuseEach(storage.filesystems, '$.storage.filesystems', report, (filesystem) =>
    filesystem.name === 'root'
      ? undefined
      : ['is a named filesystem, which Ignition 3 does not have', 'the filesystem root'],
  );
  for (const list of ['files', 'directories', 'links'] as const) {
    refuseEach<Spec2PathEntry>(storage[list], `$.storage.${list}`, report, (entry) =>
      entry.filesystem === 'root' ? undefined : ['is not on the filesystem root', 'filesystem: root'],
    );
  }
  refuseEach(storage.files, '$.storage.files', report, (file) =>
    file.append && file.overwrite ? ['has both append and overwrite', 'one of them'] : undefined,
  );
  // Two entries for a unit are collected, two drop-ins of one name in an entry are ign-converter's
  // DuplicateDropinError.
  for (const [index, { dropins = [] }] of (systemd.units ?? []).entries()) {
    report.duplicates([[`$.systemd.units[${index}].dropins`, dropins.map(({ name }) => name)]]);
  }
  for (const [index, disk] of (storage.disks ?? []).entries()) {
    // Each has a start and a size, in sectors, if only 0: ign-converter refuses them as deprecated (ValidateSize of
    // 2.3).
    refuseEach(disk.partitions, `$.storage.disks[${index}].partitions`, report, () => [
      'has its start and size in sectors',
      'an Ignition 3 config with startMiB and sizeMiB',
    ]);
  }
}

type WhyNot<T> = (entry: T) => readonly [reason: string, expected: string] | undefined;

function refuseEach<T>(
  entries: readonly T[] | undefined,
  path: string,
  report: Report,
  whyNot: WhyNot<T>,
): void {
  for (const [index, entry] of (entries ?? []).entries()) {
    const why = whyNot(entry);
    if (why !== undefined) {
      report.problem(`${path}[${index}]`, ...why);
    }
  }
}

/** @returns the last entry of each identity, in reverse order. */
function lastOfEach<T>(entries: readonly T[], identity: (entry: T) => string): T[] {
  const last = new Map<string, T>();
  for (const entry of entries.toReversed()) {
    if (!last.has(identity(entry))) {
      last.set(identity(entry), entry);
    }
  }
  return [...last.values()];
}

function translateReference(reference: Spec2Resource): Resource {
  return {
    source: reference.source ?? '',
    ...(reference.verification && { verification: reference.verification }),
  };
}

function translatePathEntry(entry: Spec2PathEntry): PathEntry {
  return {
    path: entry.path,
    ...present({ overwrite: entry.overwrite }),
    ...(entry.user && { user: translateOwner(entry.user) }),
    ...(entry.group && { group: translateOwner(entry.group) }),
  };
}

function translateOwner({ id, name = '' }: IgnitionOwner): IgnitionOwner {
  return { ...present({ id }), ...(name !== '' && { name }) };
}

/**
 * In 2.0 owners were plain numbers, so that leaving them out meant root, also for a file that another config gives an
 * owner.
 */
function rootUnless({ user, group }: Spec2File): Pick<PathEntry, 'user' | 'group'> {
  return { user: { id: user?.id ?? 0 }, group: { id: group?.id ?? 0 } };
}

/** Before 2.2 a mode was a plain number, so that leaving it out meant 0. */
function modeOf(mode: number | undefined, minor: Spec2Minor): { readonly mode?: number } {
  return mode === undefined && minor === 2 ? {} : { mode: mode ?? 0 };
}

/** Files of spec 2 are overwritten unless they say otherwise; of spec 3, only if they say so. */
function translateFile(file: Spec2File, minor: Spec2Minor): IgnitionFile {
  const { compression = '', source = '', verification } = file.contents ?? {};
  const contents: Resource = {
    source,
    ...(compression !== '' && { compression }),
    ...(verification && { verification }),
  };
  const append = file.append === true;
  return {
    ...translatePathEntry(file),
    ...(minor === 0 && rootUnless(file)),
    overwrite: append ? false : (file.overwrite ?? true),
    ...modeOf(file.mode, minor),
    ...(append ? { append: [contents] } : { contents }),
  };
}

function translateUnits(units: readonly Spec2Unit[]): Unit[] {
  const dropins = new Map<string, Map<string, string>>();
  for (const unit of units.toReversed()) {
    const collected = dropins.get(unit.name) ?? new Map<string, string>();
    dropins.set(unit.name, collected);
    for (const dropin of unit.dropins ?? []) {
      if (!collected.has(dropin.name)) {
        collected.set(dropin.name, dropin.contents ?? '');
      }
    }
  }
  return lastOfEach(units, (unit) => unit.name).map((unit) => ({
    name: unit.name,
    ...enabledOf(unit),
    ...(unit.mask && { mask: true }),
    ...((unit.contents ?? '') !== '' && { contents: unit.contents ?? '' }),
    dropins: [...(dropins.get(unit.name) ?? [])].map(([name, contents]) => ({
      name,
      ...(contents !== '' && { contents }),
    })),
  }));
}

/** `enabled` wins over the older `enable`, which could only say yes. */
function enabledOf(unit: Spec2Unit): { readonly enabled?: boolean } {
  if (unit.enabled !== undefined) {
    return { enabled: unit.enabled };
  }
  return unit.enable ? { enabled: true } : {};
}

/**
 * One user core: the last entry, with the keys of the earlier ones after its own. In 2.0 an empty password hash was the
 * same as none.
 */
function translateUsers(users: readonly Spec2User[], minor: Spec2Minor): PasswdUser[] {
  const last = users.at(-1);
  if (last === undefined) {
    return [];
  }
  const keys = new Set(users.toReversed().flatMap((user) => user.sshAuthorizedKeys ?? []));
  const { passwordHash, ...user } = last;
  const isNone = minor === 0 && passwordHash === '';
  return [{ ...user, ...(isNone ? {} : present({ passwordHash })), sshAuthorizedKeys: [...keys] }];
}
