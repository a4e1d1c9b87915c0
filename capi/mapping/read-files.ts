import { posix } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { errorMessage } from '../../api/error-message.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { DEFAULT_LIMITS } from '../../machineconfig/ignition/contents.ts';
import type { Json } from '../contract/machine-objects.ts';
import { templateProblem } from './cloud-init-template.ts';
import type { MachineFile, Writable } from './machine-parts.ts';

/** An entry of `files` (bootstrap/kubeadm/v1beta2, type File). A field that isn't here may change what is written. */
const File = z.strictObject({
  path: z.string(),
  owner: z.string().optional(),
  permissions: z.string().optional(),
  encoding: z.enum(['base64', 'gzip', 'gzip+base64']).optional(),
  append: z.boolean().optional(),
  content: z.string().optional(),
  contentFrom: z.unknown().optional(),
  contentFormat: z.string().optional(),
});
type File = z.infer<typeof File>;

const Named = z.looseObject({ path: z.string() });

interface FilesRead {
  readonly files: ReadonlyMap<string, Writable<MachineFile>>;
  /** What can't be told apart by path: canonical JSON by field. */
  readonly rest: readonly (readonly [field: string, json: string])[];
}

/**
 * @param files `spec.files` of a KubeadmConfig. @param format its `spec.format`.
 * @returns them by path, as cloud-init or Ignition writes them.
 */
export function readFiles(files: Json | undefined, format: Json | undefined): FilesRead {
  const named = z.array(Named).safeParse(files ?? []);
  if (!named.success) return { files: new Map(), rest: [['spec.files', canonicalJson(files)]] };
  const byPath = Map.groupBy(named.data, ({ path }) => path);
  const how = { format, room: new Room() };
  const read = [...byPath].map(([path, entries]) => [path, readEntries(entries, how)] as const);
  return { files: new Map(read), rest: [] };
}

/** What is the same for all files of a KubeadmConfig. */
interface Reading {
  readonly format: Json | undefined;
  readonly room: Room;
}

function readEntries(entries: readonly unknown[], { format, room }: Reading): Writable<MachineFile> {
  const [entry, ...others] = entries;
  const refused = (why: string) => ({ kind: 'refused', raw: canonicalJson(entries), why }) as const;
  if (others.length > 0) return refused('several entries name this path, and their order decides');
  const parsed = File.safeParse(entry);
  if (!parsed.success)
    return refused(`it has a field or value that Shale does not know (${issuesOf(parsed.error)})`);
  const template = format === 'ignition' ? undefined : templateProblem(textOf(parsed.data));
  if (template !== undefined) return refused(template);
  try {
    return { kind: 'writable', value: fileOf(parsed.data, room) };
  } catch (error) {
    if (error instanceof Unwritable) return refused(error.message);
    throw error;
  }
}

/** What of a file cloud-init sees; in base64 nothing looks like a template. */
function textOf({ path, content = '' }: File): string {
  return `${path}\n${content}`;
}

/** Contents may be confidential, so only names of fields are repeated. */
function issuesOf(error: z.ZodError): string {
  const names = error.issues.map((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys.join(', ') : issue.path.join('.'),
  );
  return names.join(', ');
}

/** Why a file can't be written in place: a clause. */
class Unwritable extends Error {
  override readonly name = 'Unwritable';
}

function fileOf(file: File, room: Room): MachineFile {
  const { path } = file;
  if (!path.startsWith('/') || posix.normalize(path) !== path || path.endsWith('/')) {
    throw new Unwritable('its path is not absolute, or has empty, "." or ".." elements');
  }
  if (file.append === true)
    throw new Unwritable('appending twice is not appending once; name the whole content');
  if (file.contentFrom !== undefined) {
    throw new Unwritable('its content comes from a Secret, and no secret may be in an image');
  }
  if (file.contentFormat !== undefined && file.contentFormat !== 'Raw') {
    throw new Unwritable(`only Cluster API renders contents of the format ${file.contentFormat}`);
  }
  return { path, mode: modeOf(file.permissions), ...ownerOf(file.owner), content: contentOf(file, room) };
}

/** Of cloud-init's write_files. */
const DEFAULT_MODE = 0o644;

function modeOf(permissions: string | undefined): number {
  if (permissions === undefined) return DEFAULT_MODE;
  if (!/^(0o)?[0-7]{3,5}$/.test(permissions) || Number.parseInt(octal(permissions), 8) > 0o7777) {
    throw new Unwritable('its permissions are not an octal number such as 0644');
  }
  return Number.parseInt(octal(permissions), 8);
}

function octal(permissions: string): string {
  return permissions.replace(/^0o/, '');
}

/** cloud-init looks up names alone (util.chownbyname). */
const OWNER = /^([a-z_][a-z0-9_-]*\$?)(?::([a-z_][a-z0-9_-]*\$?))?$/;

function ownerOf(owner: string | undefined): Pick<MachineFile, 'user' | 'group'> {
  const [, user, group = 'root'] = OWNER.exec(owner ?? 'root:root') ?? [];
  if (user === undefined) throw new Unwritable('its owner is not of the form user:group, by names');
  return { user, group };
}

function contentOf({ content = '', encoding }: File, room: Room): string {
  if (encoding === undefined) {
    // YAML makes line feeds of them (YAML 1.2, 5.4).
    if (content.includes('\r'))
      throw new Unwritable('its content has carriage returns, which get lost in cloud-config; use base64');
    return Buffer.from(asBlock(content)).toString('base64');
  }
  const isBase64 = encoding === 'base64' || encoding === 'gzip+base64';
  if (isBase64 && !isCanonicalBase64(content)) throw new Unwritable('its content is not base64');
  const bytes = Buffer.from(content, isBase64 ? 'base64' : 'utf8');
  const plain = encoding === 'gzip' || encoding === 'gzip+base64' ? room.gunzip(bytes) : bytes;
  return plain.toString('base64');
}

/**
 * Cluster API writes contents as a block of YAML (`content: |` in bootstrap/kubeadm/pkg/cloudinit, `inline: |` for
 * Ignition), which ends with one line break whatever the content ends with.
 */
function asBlock(content: string): string {
  let end = content.length;
  while (content[end - 1] === '\n') end -= 1;
  return end === 0 ? '' : `${content.slice(0, end)}\n`;
}

/** With white space between lines, as `base64` prints it. */
function isCanonicalBase64(content: string): boolean {
  const text = content.replace(/\s/g, '');
  return Buffer.from(text, 'base64').toString('base64') === text;
}

/** What files may decompress to together: a template of a megabyte could expand to a gigabyte. */
class Room {
  #bytes = DEFAULT_LIMITS.configBytes;

  gunzip(bytes: Buffer): Buffer {
    // None left: Node requires a limit of one byte at least.
    const maxOutputLength = Math.max(1, Math.min(DEFAULT_LIMITS.fileBytes, this.#bytes));
    try {
      const plain = gunzipSync(bytes, { maxOutputLength });
      this.#bytes -= plain.length;
      return plain;
    } catch (error) {
      // It may have expanded as far as it could.
      this.#bytes -= maxOutputLength;
      throw new Unwritable(`its content can not be decompressed: ${errorMessage(error)}`, { cause: error });
    }
  }
}
