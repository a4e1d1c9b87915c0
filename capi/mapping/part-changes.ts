import { by } from '../../api/order.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import type { MachineParts, PartChanges, PartName, RefusedChange, Writable } from './machine-parts.ts';

/** What comes of comparing one part; undefined: it is the same. */
type Change = PartName | RefusedChange | undefined;

/**
 * @returns the parts that differ and can be changed in place, and every other difference with the reason why it needs a
 *   new machine. Only what `desired` has is judged: what is replaced doesn't have to be readable.
 */
export function changedParts(current: MachineParts, desired: MachineParts): PartChanges {
  const changes = [
    ...namesIn(current.files, desired.files).map((path) => fileChange(path, current, desired)),
    ntpChange(current, desired),
    ...namesIn(current.keys, desired.keys).map((user) => keysChange(user, current, desired)),
    versionChange(current, desired),
    imageChange(current, desired),
    ...namesIn(current.rest, desired.rest).map((field) => restChange(field, current, desired)),
  ].filter((change) => change !== undefined);
  return {
    taken: changes.filter((change) => 'kind' in change),
    refused: changes.filter((change) => 'field' in change),
  };
}

function namesIn(a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): readonly string[] {
  return [...new Set([...a.keys(), ...b.keys()])].toSorted(by((name) => name));
}

function isSame<T>(a: Writable<T> | undefined, b: Writable<T> | undefined): boolean {
  return canonicalJson(rawOf(a)) === canonicalJson(rawOf(b));
}

function rawOf<T>(part: Writable<T> | undefined): unknown {
  return part?.kind === 'refused' ? { raw: part.raw } : part;
}

/**
 * A file that is gone from the template stays on the machine: if cloud-init wrote it, a MachineConfig without it gives
 * back what the machine came with.
 */
const CAME_WITH_MACHINE = 'what the machine came with can not be taken away in place';

function fileChange(path: string, current: MachineParts, desired: MachineParts): Change {
  const [before, after] = [current.files.get(path), desired.files.get(path)];
  if (isSame(before, after)) return undefined;
  const field = `KubeadmConfig spec.files[${path}]`;
  if (after === undefined) return { field, why: CAME_WITH_MACHINE };
  return after.kind === 'refused' ? { field, why: after.why } : { kind: 'file', path };
}

function ntpChange(current: MachineParts, desired: MachineParts): Change {
  const after = desired.ntp;
  if (isSame(current.ntp, after)) return undefined;
  const field = 'KubeadmConfig spec.ntp';
  if (after === undefined) return { field, why: CAME_WITH_MACHINE };
  return after.kind === 'refused' ? { field, why: after.why } : { kind: 'ntp' };
}

/**
 * cloud-init wrote the machine's first keys to ~/.ssh/authorized_keys, which sshd reads beside the file that Shale
 * writes (machineconfig/layered-files.ts): a key that is gone from the template would still open the machine.
 */
const KEY_STAYS = 'a key that was removed would stay in ~/.ssh/authorized_keys, where cloud-init wrote it';

function keysChange(user: string, current: MachineParts, desired: MachineParts): Change {
  const [before, after] = [current.keys.get(user), desired.keys.get(user)];
  if (isSame(before, after)) return undefined;
  const field = `KubeadmConfig spec.users[${user}].sshAuthorizedKeys`;
  if (after?.kind === 'refused') return { field, why: after.why };
  if (before?.kind === 'refused') return { field, why: KEY_STAYS };
  const [had, has] = [new Set(before?.value), new Set(after?.value)];
  if (![...had].every((key) => has.has(key))) return { field, why: KEY_STAYS };
  return had.size === has.size ? undefined : { kind: 'keys', user };
}

/** As Cluster API writes it. */
const VERSION = /^v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$/;

function versionChange({ version: before }: MachineParts, { version: after }: MachineParts): Change {
  if (before === after) return undefined;
  const field = 'Machine spec.version';
  if (after === undefined) return { field, why: 'it is not set any more' };
  return VERSION.test(after) ? { kind: 'version' } : { field, why: 'it is not a version of Kubernetes' };
}

function imageChange({ image: before }: MachineParts, { image: after }: MachineParts): Change {
  if (isSame(before, after)) return undefined;
  const field = 'the image of the infrastructure machine';
  if (after === undefined) return { field, why: 'it is not set any more' };
  return after.kind === 'refused' ? { field, why: after.why } : { kind: 'image' };
}

function restChange(field: string, current: MachineParts, desired: MachineParts): Change {
  if (current.rest.get(field) === desired.rest.get(field)) return undefined;
  return { field, why: 'Shale can not change it on a machine' };
}
