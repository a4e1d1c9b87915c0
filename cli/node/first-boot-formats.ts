import { stringify } from 'yaml';
import type { IgnitionConfig, Luks } from '../../machineconfig/ignition/config.ts';
import { IGNITION_VERSION, lowestIgnitionVersion } from '../../machineconfig/ignition/parse.ts';
import type { FirstBootFile, FirstBootParts } from './first-boot.ts';

/** Sections of a pool's config that only Ignition can apply. */
type IgnitionSections = Pick<IgnitionConfig, 'passwd' | 'storage'>;

/**
 * The Ignition config of a machine: its first boot, and what of the pool's config only Ignition can set up. The pool's
 * files and units are in its image. Its version is the lowest that will do, because the stock image may have an older
 * Ignition.
 *
 * @param parts of the first boot. @param pool the pool's config.
 * @returns JSON, the same bytes for the same values.
 */
export function formatIgnition(parts: FirstBootParts, pool: IgnitionSections): string {
  const { passwd, storage = {} } = pool;
  const { disks, raid, luks, filesystems } = storage;
  const { unit, dropin } = parts;
  const units = [
    ...(unit === undefined ? [] : [{ name: unit.name, enabled: true, contents: unit.contents }]),
    ...(dropin === undefined
      ? []
      : [{ name: dropin.unit, dropins: [{ name: dropin.name, contents: dropin.contents }] }]),
  ];
  const files = parts.files.map(({ path, mode, contents }) => ({
    path,
    overwrite: true,
    mode,
    contents: { source: `data:;base64,${base64(contents)}` },
  }));
  const sections = {
    ...section('passwd', { users: passwd?.users, groups: passwd?.groups }),
    ...section('storage', { disks, raid, luks, filesystems, files }),
    ...section('systemd', { units }),
  };
  const version = lowestIgnitionVersion({ ignition: { version: IGNITION_VERSION }, ...sections });
  return `${JSON.stringify({ ignition: { version }, ...sections }, undefined, 2)}\n`;
}

/** @returns the section without empty lists; none where nothing is left. */
function section(name: string, lists: Readonly<Record<string, readonly unknown[] | undefined>>) {
  const filled = Object.entries(lists).filter(([, list]) => list !== undefined && list.length > 0);
  return filled.length === 0 ? {} : { [name]: Object.fromEntries(filled) };
}

/**
 * Finds what readers of the output should perhaps not know: user data can be read by every process of a machine, on
 * many clouds.
 *
 * @returns the fields of the pool's sections with secrets, by their JSON paths.
 */
export function secretsIn({ passwd = {}, storage = {} }: IgnitionSections): string[] {
  const hashes = (kind: 'users' | 'groups') =>
    (passwd[kind] ?? []).flatMap(({ passwordHash = '' }, index) =>
      passwordHash === '' ? [] : [`$.passwd.${kind}[${index}].passwordHash`],
    );
  return [...hashes('users'), ...hashes('groups'), ...(storage.luks ?? []).flatMap(secretsOfLuks)];
}

function secretsOfLuks({ keyFile, clevis }: Luks, index: number): string[] {
  const path = `$.storage.luks[${index}]`;
  return [
    ...(keyFile?.source === undefined ? [] : [`${path}.keyFile`]),
    ...(clevis?.custom?.config === undefined ? [] : [`${path}.clevis.custom.config`]),
  ];
}

/** @returns the pool's sections that only Ignition applies, which cloud-init has no field for, by their JSON paths. */
export function onlyForIgnition({ passwd = {}, storage = {} }: IgnitionSections): string[] {
  const lists = {
    '$.storage.disks': storage.disks,
    '$.storage.raid': storage.raid,
    '$.storage.luks': storage.luks,
    '$.storage.filesystems': storage.filesystems,
    '$.passwd.users': passwd.users,
    '$.passwd.groups': passwd.groups,
  };
  return Object.entries(lists).flatMap(([path, list]) => ((list ?? []).length === 0 ? [] : [path]));
}

/**
 * The user data of a machine with cloud-init. `bootcmd` runs before `write_files`, and at each boot, so it writes the
 * files itself. `runcmd` would be too late: cloud-init marks it as done before it runs, so that a reboot in it skips
 * what is left, such as `kubeadm join`.
 *
 * @returns YAML with the header of cloud-init, the same bytes for the same values.
 */
export function formatCloudInit(parts: FirstBootParts): string {
  const { unit, dropin, files } = parts;
  const all: readonly FirstBootFile[] = [
    ...files,
    ...(unit === undefined ? [] : [unitFile(unit.name, unit.contents)]),
    ...(dropin === undefined ? [] : [unitFile(`${dropin.unit}.d/${dropin.name}`, dropin.contents)]),
  ];
  const commands = all.flatMap(({ path, contents, mode }) => [
    `mkdir -p ${path.slice(0, path.lastIndexOf('/'))}`,
    `echo ${base64(contents)} | base64 -d > ${path}`,
    `chmod 0${mode.toString(8)} ${path}`,
  ]);
  if (all.length > 0) commands.push('systemctl daemon-reload');
  if (unit !== undefined) commands.push(`systemctl start --no-block ${unit.name}`);
  // In a subshell, because all commands of bootcmd are one script. Cluster API's bootCommands takes strings alone.
  const script = ['(', 'set -eu', ...commands, ')', ''].join('\n');
  const bootcmd = all.length === 0 ? {} : { bootcmd: [script] };
  return `#cloud-config\n${stringify(bootcmd, { lineWidth: 0 })}`;
}

function unitFile(name: string, contents: string): FirstBootFile {
  return { path: `/etc/systemd/system/${name}`, contents, mode: 0o644 };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
