import { by } from '../../api/order.ts';
import type { FileFacts } from './file-facts.ts';
import { entriesAt, factsAt, nodeAt, type TreeNode } from './file-tree.ts';
import type { Package, PackageFormat } from './package.ts';
import { withDeclared } from './sysusers.ts';
import { type Units, unitsOfTree } from './units.ts';

/**
 * What an image has that a person asks about before another image takes its place
 * (docs/decisions/0031-contents-of-base-images.md).
 */
export interface ImageContents {
  /** os-release(5): ID, NAME, PRETTY_NAME and VERSION_ID. */
  readonly os: Readonly<Record<string, string>>;
  readonly databases: readonly PackageDatabase[];
  readonly unreadable: readonly UnreadableFile[];
  /** Versions of kernels, as `uname -r` prints them. */
  readonly kernels: readonly string[];
  /** Those of kargs.d, in their order. */
  readonly kernelArguments: readonly string[];
  readonly units: Units;
  /** Rules of system-preset, in their order. */
  readonly presets: readonly string[];
  /** Numbers by name. */
  readonly users: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<string, number>;
  /** Users and groups that are declared without a number: the first boot chooses one. */
  readonly allocated: readonly string[];
}

/** A file that belongs to the contents and can't be read. */
export interface UnreadableFile {
  readonly path: string;
  /** A clause without a subject. */
  readonly why: string;
  readonly isDatabase: boolean;
}

/** A list of packages that an image has. */
export interface PackageDatabase {
  readonly format: PackageFormat;
  readonly path: string;
  readonly packages: readonly Package[];
}

/** What the layers of an image make together (image/base/base-tree.ts). */
export interface ContentTree {
  readonly root: Extract<TreeNode, { readonly kind: 'directory' }>;
  readonly users: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<string, number>;
}

type Root = ContentTree['root'];

/**
 * Where RPM keeps its database: in current distributions, on rpm-ostree's systems, and by RPM's own default. Most
 * images have links from one to another.
 */
const RPM_PLACES = ['/usr/lib/sysimage/rpm', '/usr/share/rpm', '/var/lib/rpm'];
const RPM_FILES = ['rpmdb.sqlite', 'Packages.db', 'Packages'];
/** dpkg's own, and where images have it whose /var begins empty: a link to it comes with the boot (tmpfiles.d(5)). */
const DPKG_PLACES = ['/var/lib/dpkg', '/usr/lib/sysimage/dpkg', '/usr/share/dpkg/database'];
/** apk-tools 3 moves its database. */
const APK_FILES = ['/usr/lib/apk/db/installed', '/lib/apk/db/installed'];

/** @param architecture GOARCH of the image. @returns what an image with this tree has. */
export function contentsOf(tree: ContentTree, architecture: string): ImageContents {
  const { root, users, groups } = tree;
  const files = [...dpkgFiles(root), ...rpmFiles(root), ...apkFiles(root)];
  const kargs = filesOf(root, ['/usr/lib/bootc/kargs.d'], '.toml');
  const presets = filesOf(root, ['/usr/lib/systemd/system-preset', '/etc/systemd/system-preset'], '.preset');
  const sysusers = filesOf(root, ['/usr/lib/sysusers.d', '/etc/sysusers.d'], '.conf');
  const os = osRelease(root);
  return {
    os: os?.facts.kind === 'osRelease' ? os.facts.fields : {},
    databases: files.flatMap(({ path, facts }) => (facts.kind === 'packages' ? [{ ...facts, path }] : [])),
    unreadable: [
      ...unreadableOf(files, { isDatabase: true }),
      ...unreadableOf([...kargs, ...presets, ...sysusers, ...(os === undefined ? [] : [os])], {
        isDatabase: false,
      }),
    ],
    kernels: kernelsIn(root),
    kernelArguments: kargs.flatMap(({ facts }) => argumentsFor(facts, architecture)),
    units: unitsOfTree(root),
    presets: presets.flatMap(({ facts }) => (facts.kind === 'presets' ? facts.rules : [])),
    ...withDeclared(
      { users, groups },
      sysusers.flatMap(({ facts }) => (facts.kind === 'sysusers' ? facts.accounts : [])),
    ),
  };
}

interface FoundFacts {
  readonly path: string;
  readonly facts: FileFacts;
}

function unreadableOf(
  files: readonly FoundFacts[],
  { isDatabase }: Pick<UnreadableFile, 'isDatabase'>,
): readonly UnreadableFile[] {
  return files.flatMap(({ path, facts }) =>
    facts.kind === 'unreadable' ? [{ path, why: facts.why, isDatabase }] : [],
  );
}

function factsOfPath(root: Root, path: string): readonly FoundFacts[] {
  const facts = factsAt(root, path);
  return facts === undefined ? [] : [{ path, facts }];
}

/** The first place with one counts, as for RPM. */
function dpkgFiles(root: Root): readonly FoundFacts[] {
  return DPKG_PLACES.map((place) => dpkgFilesIn(root, place)).find((files) => files.length > 0) ?? [];
}

/** distroless has a file for each package in status.d. */
function dpkgFilesIn(root: Root, place: string): readonly FoundFacts[] {
  const below = `${place}/status.d`;
  return [
    ...factsOfPath(root, `${place}/status`),
    ...entriesAt(root, below).flatMap(([name]) => factsOfPath(root, `${below}/${name}`)),
  ];
}

/** The first one counts: the others are links to it, or left over from another format. */
function rpmFiles(root: Root): readonly FoundFacts[] {
  const all = RPM_PLACES.flatMap((place) => RPM_FILES.map((file) => `${place}/${file}`));
  const [first] = all.flatMap((path) => factsOfPath(root, path));
  if (first === undefined) return [];
  const log = factsAt(root, `${first.path}-wal`);
  return [log === undefined ? first : { path: first.path, facts: log }];
}

function apkFiles(root: Root): readonly FoundFacts[] {
  return APK_FILES.flatMap((path) => factsOfPath(root, path)).slice(0, 1);
}

function osRelease(root: Root): FoundFacts | undefined {
  return ['/etc/os-release', '/usr/lib/os-release'].flatMap((path) => factsOfPath(root, path))[0];
}

/** Of files with one name, that of the later directory counts; files go by their names (systemd.preset(5)). */
function filesOf(root: Root, directories: readonly string[], suffix: string): readonly FoundFacts[] {
  const byName = new Map<string, string>();
  for (const directory of directories) {
    for (const [name] of entriesAt(root, directory)) {
      if (name.endsWith(suffix)) byName.set(name, `${directory}/${name}`);
    }
  }
  const ordered = [...byName].sort(by(([name]) => name));
  return ordered.flatMap(([, path]) => factsOfPath(root, path));
}

/** bootc names architectures as Rust does (`std::env::consts::ARCH`), images as Go. */
const RUST_ARCHITECTURES: Readonly<Record<string, string>> = {
  amd64: 'x86_64',
  arm64: 'aarch64',
  ppc64le: 'powerpc64',
};

function argumentsFor(facts: FileFacts, architecture: string): readonly string[] {
  if (facts.kind !== 'kernelArguments') return [];
  const { architectures, arguments: own } = facts;
  const name = RUST_ARCHITECTURES[architecture] ?? architecture;
  return architectures === undefined || architectures.includes(name) ? own : [];
}

/** A kernel that was removed leaves a directory without modules, at most with files that depmod wrote. */
function kernelsIn(root: Root): readonly string[] {
  const modules = ['/usr/lib/modules', '/lib/modules'].find((path) => nodeAt(root, path) !== undefined);
  if (modules === undefined) return [];
  return entriesAt(root, modules)
    .map(([name]) => name)
    .filter(
      (name) =>
        nodeAt(root, `${modules}/${name}/kernel`) !== undefined ||
        nodeAt(root, `${modules}/${name}/vmlinuz`) !== undefined,
    );
}
