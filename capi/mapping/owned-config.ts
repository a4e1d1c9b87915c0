import { z } from 'zod';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { labels } from '../../api/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { IGNITION_VERSION } from '../../machineconfig/ignition/parse.ts';
import type { MachineSettings } from '../contract/settings.ts';
import {
  type MachineFile,
  type MachineParts,
  type PartKey,
  partKey,
  type Writable,
} from './machine-parts.ts';

/** @returns the name of the MachineConfig that Shale writes for a pool that Cluster API drives. */
export function ownedConfigName(pool: string): string {
  return `50-cluster-api-${pool}`;
}

/**
 * The MachineConfig of the parts that a change in place has touched. A pure function of its arguments: the same bytes
 * whoever writes it.
 *
 * @param desired the current template of the pool's owner.
 * @param owned keys of parts; those that `desired` doesn't have, or can't be written, are left out. The version isn't
 *   in a MachineConfig: it is the pool's stream.
 * @returns undefined where nothing is left: there must be no such MachineConfig then.
 */
export function machineConfigOf(
  desired: MachineParts,
  owned: ReadonlySet<PartKey>,
  pool: string,
): MachineConfig | undefined {
  const files = ownedFiles(desired, owned);
  const users = [...desired.keys].flatMap(([user, keys]) =>
    owned.has(partKey({ kind: 'keys', user }))
      ? valuesOf(keys).map((sshAuthorizedKeys) => ({ name: user, sshAuthorizedKeys }))
      : [],
  );
  const [osImageURL] = owned.has(partKey({ kind: 'image' })) ? valuesOf(desired.image) : [];
  if (files.length === 0 && users.length === 0 && osImageURL === undefined) return undefined;
  return {
    apiVersion: apiVersionOf(MachineConfigs),
    kind: MachineConfigs.kind,
    metadata: { name: ownedConfigName(pool), labels: { [labels.role]: pool } },
    spec: {
      config: {
        ignition: { version: IGNITION_VERSION },
        ...(users.length > 0 && { passwd: { users } }),
        ...(files.length > 0 && { storage: { files: files.map(ignitionFile) } }),
      },
      ...(osImageURL !== undefined && { osImageURL }),
    },
  };
}

function ownedFiles({ files, ntp }: MachineParts, owned: ReadonlySet<PartKey>): readonly MachineFile[] {
  const named = [...files].flatMap(([path, file]) =>
    owned.has(partKey({ kind: 'file', path })) ? valuesOf(file) : [],
  );
  const servers = owned.has(partKey({ kind: 'ntp' })) ? valuesOf(ntp) : [];
  return [...named, ...servers].toSorted(by(({ path }) => path));
}

function valuesOf<T>(part: Writable<T> | undefined): readonly T[] {
  return part?.kind === 'writable' ? [part.value] : [];
}

function ignitionFile({ path, mode, user, group, content }: MachineFile) {
  return {
    path,
    mode,
    overwrite: true,
    contents: { source: `data:;base64,${content}` },
    // Without an owner a file is root's, whatever number that has.
    ...(user !== 'root' && { user: { name: user } }),
    ...(group !== 'root' && { group: { name: group } }),
  };
}

const Owned = z.object({
  storage: z.object({ files: z.array(z.object({ path: z.string() })).default([]) }).default({ files: [] }),
  passwd: z.object({ users: z.array(z.object({ name: z.string() })).default([]) }).default({ users: [] }),
});

/**
 * @param machineConfig that {@link machineConfigOf} made; undefined where the pool has none.
 * @returns keys of the parts that it has.
 * @throws {z.ZodError} when somebody else has written something that is no list of files or users to it.
 */
export function ownedParts(
  machineConfig: MachineConfig | undefined,
  { ntpFile }: Pick<MachineSettings, 'ntpFile'>,
): ReadonlySet<PartKey> {
  if (machineConfig === undefined) return new Set();
  const { storage, passwd } = Owned.parse(machineConfig.spec.config ?? {});
  const { osImageURL } = machineConfig.spec;
  return new Set([
    ...storage.files.map(({ path }) => partKey(path === ntpFile ? { kind: 'ntp' } : { kind: 'file', path })),
    ...passwd.users.map(({ name }) => partKey({ kind: 'keys', user: name })),
    ...(osImageURL === undefined || osImageURL === '' ? [] : [partKey({ kind: 'image' })]),
  ]);
}
