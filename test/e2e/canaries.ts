import { createPrivateKey, randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { readOfProcess, readProcessTable, withDescendants } from '../../workshop/sandbox/process-table.ts';

/** Text that was looked through, and what it is, for messages. */
export interface Haystack {
  readonly where: string;
  readonly bytes: Buffer;
}

/** Every form of a secret in which a person would look for it. */
export type Needles = ReadonlyMap<string, Buffer>;

/** @returns a prefix that no other text has: the values of planted Secrets begin with it. */
export function newCanary(): string {
  return `canary${randomBytes(12).toString('hex')}`;
}

/**
 * @param name for messages. @param secret at least 12 bytes of it.
 * @returns the secret itself, and in base64 at whatever place of a longer text, in hexadecimal, and URL-safe.
 */
export function needlesOf(name: string, secret: Uint8Array): Needles {
  const bytes = Buffer.from(secret);
  const forms = new Map<string, Buffer>([[name, bytes]]);
  for (const offset of [0, 1, 2]) {
    // The characters at both ends depend on what is beside them.
    const padded = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replaceAll('=', '');
    const core = padded.slice(offset === 0 ? 0 : offset + 1, -2);
    forms.set(`${name} in base64 at ${offset}`, Buffer.from(core));
    const urlSafe = core.replaceAll('+', '-').replaceAll('/', '_');
    if (urlSafe !== core) forms.set(`${name} in base64url at ${offset}`, Buffer.from(urlSafe));
  }
  forms.set(`${name} in hexadecimal`, Buffer.from(bytes.toString('hex')));
  forms.set(`${name} in hexadecimal, upper case`, Buffer.from(bytes.toString('hex').toUpperCase()));
  return forms;
}

/** @returns the forms of a private key's secret number and of the lines of its PEM text; none for any other text. */
export function needlesOfKey(name: string, pem: string): Needles {
  if (!pem.includes('PRIVATE KEY-----')) return new Map();
  const lines = pem.split('\n').filter((line) => line.length >= 40 && !line.startsWith('-----'));
  const { d } = createPrivateKey(pem).export({ format: 'jwk' });
  const number = typeof d === 'string' ? needlesOf(`${name}: the number`, Buffer.from(d, 'base64url')) : [];
  // The first line has the algorithm, which all keys of a kind share.
  const later = lines
    .slice(1)
    .flatMap((line, index) => [...needlesOf(`${name}: line ${index + 2} of its PEM`, Buffer.from(line))]);
  return new Map([...number, ...later]);
}

/** @returns where a secret was found, in which form; none is what is expected. */
export function findNeedles(haystacks: Iterable<Haystack>, needles: Needles): string[] {
  const found: string[] = [];
  for (const { where, bytes } of haystacks) {
    for (const [form, needle] of needles) if (bytes.includes(needle)) found.push(`${where}: ${form}`);
  }
  return found;
}

/** @returns every file below a directory; what is compressed by gzip, inflated. */
export async function* filesBelow(directory: string): AsyncGenerator<Haystack> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const where = path.join(entry.parentPath, entry.name);
    const bytes = await readFile(where);
    yield { where, bytes: bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes };
  }
}

/** Arguments and environments of processes, as they were seen. */
export interface ProcessSamples {
  /** Looks once more. @returns each once. */
  stop(): readonly Haystack[];
}

/** @param root whose descendants are looked at, without itself. @param intervalMs between two looks. */
export function sampleProcesses(root: number, intervalMs = 300): ProcessSamples {
  const seen = new Map<string, Haystack>();
  const timer = setInterval(() => look(root, seen), intervalMs);
  return {
    stop() {
      clearInterval(timer);
      look(root, seen);
      return [...seen.values()];
    },
  };
}

/** proc_pid_cmdline(5), proc_pid_environ(5); a process that ended meanwhile has neither. */
function look(root: number, seen: Map<string, Haystack>): void {
  for (const pid of withDescendants(readProcessTable(), [root])) {
    if (pid === root) continue;
    for (const file of ['cmdline', 'environ'] as const) {
      const bytes = readOfProcess(pid, file);
      if (bytes === undefined || bytes.length === 0) continue;
      const command = file === 'cmdline' ? bytes.toString().replaceAll('\0', ' ').slice(0, 200) : '';
      seen.set(`${file} ${bytes.toString('latin1')}`, { where: `${file} of a process: ${command}`, bytes });
    }
  }
}
