import { checkReference } from './check-reference.ts';
import type { Disk, Filesystem, Luks, Partition, Raid, Storage, Tang } from './config.ts';
import type { Report } from './report.ts';
import { whyNotCleanPath } from './validate-paths.ts';

/**
 * Checks disks, RAID arrays, LUKS volumes and filesystems. Only Ignition at a node's first boot acts on them; Shale
 * carries them along and refuses changes.
 *
 * @param minor the version of spec 3 that the config is of.
 */
export function checkDisks(storage: Storage, minor: number, report: Report): void {
  const { disks = [], raid = [], luks = [], filesystems = [] } = storage;
  for (const [index, disk] of disks.entries()) {
    checkDisk(disk, `$.storage.disks[${index}]`, report);
  }
  for (const [index, array] of raid.entries()) {
    checkRaid(array, `$.storage.raid[${index}]`, report);
  }
  for (const [index, volume] of luks.entries()) {
    checkLuks(volume, `$.storage.luks[${index}]`, minor, report);
  }
  for (const [index, filesystem] of filesystems.entries()) {
    checkFilesystem(filesystem, `$.storage.filesystems[${index}]`, minor, report);
  }
  report.duplicates([['$.storage.disks', disks.map((disk) => disk.device)]]);
  report.duplicates([['$.storage.raid', raid.map((array) => array.name)]]);
  report.duplicates([['$.storage.luks', luks.map((volume) => volume.name)]]);
  report.duplicates([['$.storage.filesystems', filesystems.map((filesystem) => filesystem.device)]]);
}

function checkDevice(device: string, path: string, report: Report): void {
  const why = whyNotCleanPath(device);
  if (why !== undefined) {
    report.problem(path, why, 'the absolute path of a device');
  }
}

const GUID = /^(|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$/;
/** A GPT entry has room for 36 UTF-16 code units. */
const PARTITION_LABEL_MAX = 36;

function checkDisk(disk: Disk, path: string, report: Report): void {
  checkDevice(disk.device, `${path}.device`, report);
  const partitions = disk.partitions ?? [];
  for (const [index, partition] of partitions.entries()) {
    checkPartition(partition, `${path}.partitions[${index}]`, report);
  }
  checkOverlaps(partitions, path, report);
  report.duplicates([
    [`${path}.partitions`, partitions.map(({ number = 0 }) => (number === 0 ? '' : `${number}`))],
  ]);
  report.duplicates([[`${path}.partitions`, partitions.map(({ label = '' }) => label)]]);
  if (
    partitions.some((one) => one.shouldExist === false) &&
    partitions.some((one) => (one.number ?? 0) === 0)
  ) {
    report.problem(
      `${path}.partitions`,
      'remove a partition and leave a number to chance',
      'all numbers given',
    );
  }
}

function checkPartition(partition: Partition, path: string, report: Report): void {
  const { label, guid = '', typeGuid = '', sizeMiB, startMiB } = partition;
  const described = [label, sizeMiB, startMiB].some((field) => field !== undefined) || guid + typeGuid !== '';
  if (partition.shouldExist === false && described) {
    report.problem(path, 'should not exist and yet is described', 'shouldExist: false with a number alone');
  }
  if ((partition.number ?? 0) === 0 && label === undefined) {
    report.problem(path, 'has neither number nor label', 'one of them');
  }
  if (label !== undefined && (label.length > PARTITION_LABEL_MAX || label.includes(':'))) {
    report.problem(
      `${path}.label`,
      'can not be a label',
      `at most ${PARTITION_LABEL_MAX} characters, no colon`,
    );
  }
  for (const [field, value] of [['guid', guid] as const, ['typeGuid', typeGuid] as const]) {
    if (!GUID.test(value)) {
      report.problem(`${path}.${field}`, 'is not a GUID', '01234567-89AB-CDEF-EDCB-A98765432101');
    }
  }
}

/** Starts of 0 are placed by sgdisk and sizes of 0 fill what is free: neither has an extent to compare. */
function checkOverlaps(partitions: readonly Partition[], path: string, report: Report): void {
  const extents = partitions
    .map(({ startMiB = 0, sizeMiB }, index) => ({ index, start: startMiB, size: sizeMiB }))
    .filter(({ start, size }) => start !== 0 && size !== undefined)
    .map(({ index, start, size = 0 }) => ({ index, start, end: start + Math.max(size, 1) - 1 }))
    .toSorted((a, b) => a.start - b.start || a.index - b.index);
  let reach = extents[0];
  for (const extent of extents.slice(1)) {
    if (reach !== undefined && extent.start <= reach.end) {
      const other = `${path}.partitions[${reach.index}]`;
      report.problem(`${path}.partitions[${extent.index}]`, `overlaps ${other}`, 'separate partitions');
    }
    reach = reach === undefined || extent.end > reach.end ? extent : reach;
  }
}

const RAID_LEVELS = new Set(
  'linear raid0 0 stripe raid1 1 mirror raid4 4 raid5 5 raid6 6 raid10 10'.split(' '),
);
const RAID_LEVELS_WITHOUT_SPARES = new Set(['linear', 'raid0', '0', 'stripe']);

function checkRaid(raid: Raid, path: string, report: Report): void {
  const { level = '', devices = [], spares = 0 } = raid;
  if (!RAID_LEVELS.has(level)) {
    report.problem(
      `${path}.level`,
      level === '' ? 'is missing' : 'is not a RAID level',
      [...RAID_LEVELS].join(', '),
    );
  }
  if (RAID_LEVELS_WITHOUT_SPARES.has(level) && spares !== 0) {
    report.problem(`${path}.spares`, `are not possible at level ${level}`, '0');
  }
  if (devices.length === 0) {
    report.problem(`${path}.devices`, 'are missing', 'the devices of the array');
  }
  for (const [index, device] of devices.entries()) {
    checkDevice(device, `${path}.devices[${index}]`, report);
  }
  report.duplicates([[`${path}.devices`, devices]]);
}

/** LUKS2_LABEL_L holds 48 bytes with its NUL. */
const LUKS_LABEL_MAX = 47;

function checkLuks(luks: Luks, path: string, minor: number, report: Report): void {
  const { device = '', label = '', name, clevis = {}, keyFile } = luks;
  if (name.includes('/')) {
    report.problem(`${path}.name`, 'has a slash', 'a name');
  }
  if (Buffer.byteLength(label) > LUKS_LABEL_MAX) {
    report.problem(`${path}.label`, 'is too long', `at most ${LUKS_LABEL_MAX} bytes`);
  }
  if (device === '') {
    report.problem(`${path}.device`, 'is missing', 'the absolute path of a device');
  }
  checkDevice(device, `${path}.device`, report);
  checkLuksKeys(luks, path, report);
  if (keyFile !== undefined) {
    checkReference(keyFile, `${path}.keyFile`, { minor, required: false, report });
  }
  for (const [index, server] of (clevis.tang ?? []).entries()) {
    checkTang(server, `${path}.clevis.tang[${index}]`, report);
  }
}

/** Ways to unlock a volume that exclude each other. */
function checkLuksKeys({ clevis = {}, cex, keyFile }: Luks, path: string, report: Report): void {
  const { custom, tang = [], tpm2 = false, threshold = 0 } = clevis;
  const { pin = '', config = '', needsNetwork = false } = custom ?? {};
  const standardPins = tang.length > 0 || tpm2 || threshold !== 0;
  if (pin !== '' && standardPins) {
    report.problem(`${path}.clevis`, 'has a custom pin beside tang, tpm2 or threshold', 'one of them');
  }
  const customized = pin + config !== '' || needsNetwork;
  if (customized && !['tpm2', 'tang', 'sss'].includes(pin)) {
    report.problem(`${path}.clevis.custom.pin`, 'is not a known pin', 'tpm2, tang or sss');
  }
  if (customized && config === '') {
    report.problem(`${path}.clevis.custom.config`, 'is missing', 'the configuration of the pin');
  }
  if (cex?.enabled && (pin !== '' || standardPins)) {
    report.problem(`${path}.cex`, 'is enabled beside clevis', 'one of them');
  }
  if (cex?.enabled && (keyFile?.source ?? '') !== '') {
    report.problem(`${path}.cex`, 'is enabled beside a key file', 'one of them');
  }
}

function checkTang(tang: Tang, path: string, report: Report): void {
  if (tang.url !== '' && !/^https?:/i.test(tang.url)) {
    report.problem(`${path}.url`, 'is not an http or https URL', 'http://… or https://…');
  }
  if ((tang.thumbprint ?? '') === '') {
    report.problem(`${path}.thumbprint`, 'is missing', 'the thumbprint of the server');
  }
  if ((tang.advertisement ?? '') !== '' && !isJson(tang.advertisement ?? '')) {
    report.problem(`${path}.advertisement`, 'is not JSON', "the server's advertisement");
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Longest label by filesystem: mkfs.ext4(8), mkfs.btrfs(8), mkfs.xfs(8), what mkswap keeps, mkfs.fat(8). */
const LABEL_MAX: ReadonlyMap<string, number> = new Map([
  ['ext4', 16],
  ['btrfs', 256],
  ['xfs', 12],
  ['swap', 15],
  ['vfat', 11],
  ['none', 0],
]);

/** The minor version of the spec that brought `format: none`. */
const NONE_SINCE = 3;

function checkFilesystem(filesystem: Filesystem, path: string, minor: number, report: Report): void {
  const { format = '', label = '', options = [], mountOptions = [] } = filesystem;
  checkDevice(filesystem.device, `${path}.device`, report);
  checkDevice(filesystem.path ?? '', `${path}.path`, report);
  const described =
    `${filesystem.path ?? ''}${label}${filesystem.uuid ?? ''}` !== '' ||
    filesystem.wipeFilesystem === true ||
    options.length + mountOptions.length > 0;
  if (format === '' && described) {
    report.problem(`${path}.format`, 'is missing', 'a format, because other fields are set');
  }
  const labelMax = LABEL_MAX.get(format);
  const formats = [...LABEL_MAX.keys()].filter((name) => name !== 'none' || minor >= NONE_SINCE);
  if (format !== '' && !formats.includes(format)) {
    report.problem(`${path}.format`, 'is not a known filesystem', formats.join(', '));
  }
  if (labelMax !== undefined && format !== 'none' && Buffer.byteLength(label) > labelMax) {
    report.problem(`${path}.label`, `is too long for ${format}`, `at most ${labelMax} bytes`);
  }
}
