import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { SHALE_VERSION } from '../api/names.ts';
import { hexOf } from '../api/references.ts';
import { type Descriptor, digestOf } from '../image/digest.ts';
import { formatReference, parseReference, type Reference } from '../image/reference.ts';
import type { RegistryClient } from '../image/registry/registry-client.ts';
import { readBase } from './base-tree.ts';
import { cliFiles } from './cli/cli-files.ts';
import type { CliExecutable, CommandLine } from './cli/command-line.ts';
import { imageContent, layoutArchive, type PlatformImage, platformImage } from './image.ts';
import { installManifest, packagedChart } from './installation.ts';
import { type NodeProgram, withNodes } from './node-programs.ts';
import { type Named, releaseStatement } from './provenance.ts';
import type { Publication } from './publish.ts';
import { shaleFiles } from './shale-files.ts';
import { isOfInterest } from './system-files.ts';

/** What a release is made from. */
export interface ReleaseInput {
  /** Has to be the one in package.json: processes report it. */
  readonly version: string;
  readonly revision: string | undefined;
  /** The checkout, with the page and the programs built. */
  readonly root: string;
  /** Where `bin/image-packages` installed the npm packages. */
  readonly packages: string;
  /** An image with glibc, coreutils and util-linux, for each architecture. */
  readonly base: Reference;
  /** By Go's names. */
  readonly architectures: readonly string[];
  /** `host[:port]/path` that image and chart lie below. */
  readonly registry: string;
  /** URL of the directory that people download the release's files from. */
  readonly downloads: string;
  /** Makes the command line as one file for each platform. */
  commandLine(): Promise<CommandLine>;
  /** Gives the Node that the lock file pins. */
  node(architecture: string): Promise<NodeProgram>;
}

/** A release, ready to be written and published. */
export interface Release {
  /** By name. */
  readonly files: ReadonlyMap<string, Buffer>;
  readonly statement: string;
  readonly publications: readonly Publication[];
  /** What a person has to know about it. */
  readonly notes: readonly string[];
}

interface Platform {
  readonly image: PlatformImage;
  readonly materials: readonly Named[];
}

/**
 * Makes a release: nothing is run but Shale's own programs, and nothing is asked but the registry of the base image, so
 * that the same sources, base and npm packages give the same bytes on every machine of one architecture.
 *
 * @throws Error that says what is missing or does not fit together; RegistryError, ContentError.
 */
export async function makeRelease(
  client: RegistryClient,
  input: ReleaseInput,
  signal: AbortSignal,
): Promise<Release> {
  const { version, root, revision } = input;
  await checkVersion(input);
  const lock = await readFile(path.join(root, 'package-lock.json'));
  const platforms = await platformsOf(client, input, signal);
  const cli = await input.commandLine();
  const images = platforms.map(({ image }) => image);
  const content = imageContent(images);
  const at = (name: string): Reference => ({ ...parseReference(`${input.registry}/${name}`), tag: version });
  const [imageAt, chartAt] = [at('shale'), at('charts/shale')];
  const { registry, repository } = imageAt;
  const pullspec = formatReference({ registry, repository, digest: content.index.digest });
  const chart = await packagedChart(pullspec, version);
  const files = new Map<string, Buffer>([
    ['install.yaml', Buffer.from(await installManifest('bootc', pullspec))],
    ['install-containerd.yaml', Buffer.from(await installManifest('ostree', pullspec))],
    [`shale-${version}.tgz`, chart.archive],
    [`shale-image-${version}.oci.tar`, await layoutArchive(content, content.index, version)],
    ...images.map(({ architecture, sbom }): [string, Buffer] => [
      `shale-linux-${architecture}.spdx.json`,
      Buffer.from(`${sbom}\n`),
    ]),
    ...(await cliFiles(cli, { version, root, downloads: input.downloads })),
  ]);
  const published = [named(imageAt, content.index), named(chartAt, chart.manifest)];
  files.set(
    'digests.json',
    Buffer.from(
      `${JSON.stringify(Object.fromEntries(published.map(({ name, digest }) => [name, digest])), undefined, 2)}\n`,
    ),
  );
  const statement = releaseStatement({
    version,
    revision,
    products: [...published, ...[...files].map(([name, bytes]) => ({ name, digest: digestOf(bytes) }))],
    materials: [
      { name: 'package-lock.json', digest: digestOf(lock) },
      ...distinct([
        ...platforms.flatMap(({ materials }) => materials),
        ...cli.executables.map(({ from }) => from),
      ]),
    ],
    cliCompiledFor: cli.executables.flatMap(({ architecture, isCompiled }) =>
      isCompiled ? [`linux/${architecture}`] : [],
    ),
    compiledFor: images.flatMap(({ architecture, withoutCache }) =>
      withoutCache === undefined ? [`linux/${architecture}`] : [],
    ),
  });
  files.set('provenance.intoto.json', Buffer.from(`${statement}\n`));
  files.set('SHA256SUMS', Buffer.from(sums(files)));
  const sboms = images.map(({ instance, sbom }) => ({ subject: instance.descriptor, text: sbom }));
  return {
    files,
    statement,
    publications: [
      { at: imageAt, content, subject: content.index, sboms },
      { at: chartAt, content: chart.content, subject: chart.manifest, sboms: [] },
    ],
    notes: [...images.flatMap(imageNotes), ...cli.executables.flatMap(cliNotes)],
  };
}

function imageNotes({ architecture, withoutCache }: PlatformImage): string[] {
  if (withoutCache === undefined) return [];
  return [
    `linux/${architecture}: this machine can't run the image's Node (${withoutCache}), so its programs aren't compiled beforehand; a process takes about a quarter more CPU time to start`,
  ];
}

function cliNotes({ architecture, isCompiled }: CliExecutable): string[] {
  if (isCompiled) return [];
  return [
    `linux/${architecture}: this machine has another architecture, so the command line isn't compiled beforehand; it takes about twice the CPU time to start`,
  ];
}

/** A wrong version would be in labels, file names and charts, while every process reports the other one. */
async function checkVersion({ version, root }: ReleaseInput): Promise<void> {
  const { version: packageVersion } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  if (version !== packageVersion || version !== SHALE_VERSION) {
    throw new Error(
      `VERSION is ${version}, but package.json has ${packageVersion} and api/names.ts ${SHALE_VERSION}; set all three to the version of the release`,
    );
  }
}

async function platformsOf(
  client: RegistryClient,
  input: ReleaseInput,
  signal: AbortSignal,
): Promise<Platform[]> {
  const shale = await shaleFiles(input.root, input.packages);
  const installed = await readFile(path.join(input.packages, 'node_modules/.package-lock.json'), 'utf8');
  const lock = await readFile(path.join(input.root, 'package-lock.json'), 'utf8');
  const platforms: Platform[] = [];
  for (const architecture of input.architectures) {
    const { tree, image } = await readBase(client, input.base, { architecture, keep: isOfInterest }, signal);
    const base: Named = { name: `base image for linux/${architecture}`, digest: image.digest };
    const { program: node, from } = await input.node(architecture);
    const { version, revision = 'unknown' } = input;
    platforms.push({
      image: await platformImage(
        {
          architecture,
          version,
          revision,
          base: tree,
          node,
          shale,
          installed: withNodes(installed, lock, [architecture]),
        },
        signal,
      ),
      materials: [base, from],
    });
  }
  return platforms;
}

/** The image and the command line may have the same Node. */
function distinct(materials: readonly Named[]): Named[] {
  return [...new Map(materials.map((material) => [material.name, material])).values()];
}

function named(at: Reference, { digest }: Descriptor): Named {
  return { name: formatReference(at), digest };
}

/** @returns lines that `sha256sum --check` reads. */
function sums(files: ReadonlyMap<string, Buffer>): string {
  return [...files.keys()]
    .sort()
    .map((name) => `${hexOf(digestOf(files.get(name) ?? ''))}  ${name}\n`)
    .join('');
}
