import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { MachineConfig } from '../../../api/machine-config.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import { conditionIsTrue } from '../../../cluster/update-object.ts';
import { resolveInRoot } from '../../../daemon/files/resolve-in-root.ts';
import { listDeployments } from '../../../daemon/os/ostree/deployments.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../../workshop/sandbox/node/directory-host.ts';
import type { NodeKindName } from '../../../workshop/sandbox/node-kind.ts';
import { readMachineRecord } from '../../../workshop/sandbox/systemd-node/machine.ts';

/** What a config says of one path: a file's content and mode; undefined where nothing is to be. */
type Expected = { readonly content: string; readonly mode: number } | undefined;

interface Booted {
  readonly bootID: string;
  readonly image: string | undefined;
  /** What the next boot takes: also what was applied live. */
  readonly next: string | undefined;
  /** Of the running, the staged and the former system, one line each. */
  readonly deployments: readonly string[];
  /** The running root. */
  readonly root: string;
}

/** @returns the present boot of a node, by its disk. @throws where its disk is being written, or it is down. */
export async function readBoot(directory: string, kind: NodeKindName): Promise<Booted> {
  const layout = directoryNodeLayout(directory);
  const { bootID, deployment } = await readDirectoryMachine(layout);
  const deployments = await listDeployments(layout.sysroot);
  const image = deployments.find(({ id }) => deployment.endsWith(id))?.image;
  const root =
    kind === 'directory' ? layout.root : `/proc/${(await readMachineRecord(directory)).leader}/root`;
  // Of a machine that has lost its power, nothing can be read until it boots again.
  await stat(path.join(root, 'etc'));
  const listed = deployments.map(({ id, image: of }) => `deployment ${id} of ${of}`);
  return { bootID, image, next: deployments[0]?.image, deployments: listed, root };
}

/**
 * Compares the disk of a node with the config that it says it runs.
 *
 * @param read reads the MachineConfigNode and its config; it is called before and after, because what changes meanwhile
 *   is not compared.
 * @param paths that any config has had: what the present one lacks must not be there.
 * @returns where they differ; undefined where the node says nothing, or changed meanwhile.
 */
export async function compareBytes(
  directory: string,
  kind: NodeKindName,
  read: () => { readonly node: MachineConfigNode | undefined; readonly config: MachineConfig | undefined },
  paths: Iterable<string>,
): Promise<{ readonly config: string; readonly differences: readonly string[] } | undefined> {
  const { node, config } = read();
  if (node === undefined || config === undefined || !saysUpdated(node)) return undefined;
  const boot = await readBoot(directory, kind).catch(() => undefined);
  if (boot === undefined) return undefined;
  const differences = await differencesOf(boot.root, expectedFiles(config), paths);
  const { currentImage } = node.status?.configImage ?? {};
  if (node.status?.mode === 'Layered' && boot.next !== currentImage)
    differences.push(`it will boot ${boot.next}, and says ${currentImage}`);
  const after = await readBoot(directory, kind).catch(() => undefined);
  const isSame =
    after?.bootID === boot.bootID &&
    read().node?.metadata.resourceVersion === node.metadata.resourceVersion &&
    node.status?.bootID === boot.bootID;
  return isSame ? { config: config.metadata.name, differences } : undefined;
}

/**
 * @param paths that any config has had.
 * @returns what Shale writes to the disk of a node, one line each. @throws where it is being written, or is down.
 */
export async function readDisk(
  directory: string,
  kind: NodeKindName,
  paths: Iterable<string>,
): Promise<{ readonly bootID: string; readonly has: readonly string[] }> {
  const { bootID, root, deployments } = await readBoot(directory, kind);
  const files = [...paths].map(async (name) => {
    const is = await fileAt(root, name);
    return is === undefined ? [] : [`${name} ${is.mode.toString(8)} ${is.content.trim()}`];
  });
  return { bootID, has: [...deployments, ...(await Promise.all(files)).flat()] };
}

function saysUpdated({ status }: MachineConfigNode): boolean {
  return conditionIsTrue(status?.conditions, 'Updated');
}

async function differencesOf(
  root: string,
  expected: ReadonlyMap<string, Expected>,
  paths: Iterable<string>,
): Promise<string[]> {
  const differences: string[] = [];
  for (const name of new Set([...expected.keys(), ...paths])) {
    const should = expected.get(name);
    const is = await fileAt(root, name);
    if (should === undefined && is !== undefined) differences.push(`${name} is there, and no config has it`);
    if (should === undefined) continue;
    if (is === undefined) differences.push(`${name} is missing`);
    else if (is.content !== should.content) differences.push(`${name} has other content`);
    else if (is.mode !== should.mode) differences.push(`${name} has mode ${is.mode.toString(8)}`);
  }
  return differences;
}

async function fileAt(root: string, name: string): Promise<Expected> {
  try {
    const place = await resolveInRoot(root, name);
    if (place === undefined) return undefined;
    const { mode } = await stat(place);
    return { content: await readFile(place, 'utf8'), mode: mode & 0o7777 };
  } catch {
    return undefined;
  }
}

const DEFAULT_MODE = 0o644;
const UNITS = '/etc/systemd/system';

/** @returns the files and units of a config whose contents are plain data URLs. */
export function expectedFiles({ spec }: MachineConfig): ReadonlyMap<string, Expected> {
  const config = (spec.config ?? {}) as IgnitionConfig;
  const files = (config.storage?.files ?? []).flatMap(({ path: name, mode, contents }) => {
    const content = contents?.compression ? undefined : decoded(contents?.source ?? 'data:,');
    return content === undefined ? [] : [[name, { content, mode: mode ?? DEFAULT_MODE }] as const];
  });
  const units = (config.systemd?.units ?? []).flatMap(({ name, contents }) =>
    contents === undefined
      ? []
      : [[path.posix.join(UNITS, name), { content: contents, mode: DEFAULT_MODE }] as const],
  );
  return new Map([...files, ...units]);
}

/** @returns the content of a data URL (RFC 2397); undefined for another URL. */
function decoded(source: string): string | undefined {
  const match = /^data:[^,;]*(;base64)?,(.*)$/s.exec(source.replace('data:;', 'data:x;'));
  if (match === null) return undefined;
  const [, base64, data = ''] = match;
  return base64 === undefined ? decodeURIComponent(data) : Buffer.from(data, 'base64').toString('utf8');
}

interface IgnitionConfig {
  readonly storage?: {
    readonly files?: readonly {
      readonly path: string;
      readonly mode?: number;
      readonly contents?: { readonly source?: string; readonly compression?: string };
    }[];
  };
  readonly systemd?: { readonly units?: readonly { readonly name: string; readonly contents?: string }[] };
}
