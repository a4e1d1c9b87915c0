import type {
  Clevis,
  Disk,
  Dropin,
  Filesystem,
  HttpHeader,
  IgnitionConfig,
  IgnitionDirectory,
  IgnitionFile,
  IgnitionKernelArguments,
  IgnitionLink,
  IgnitionOwner,
  IgnitionSection,
  Luks,
  Partition,
  Passwd,
  PasswdGroup,
  PasswdUser,
  Raid,
  Resource,
  Storage,
  Systemd,
  Tang,
  Unit,
} from './config.ts';
import {
  appended,
  flag,
  integer,
  type ListSchema,
  listBy,
  requiredText,
  type Schema,
  since,
  struct,
  text,
  textSet,
} from './schema.ts';

/**
 * Ignition 3.0 to 3.5. Every version only adds fields, so one schema reads them all; which list has which identity and
 * which are appended is what the spec's merging rules (docs/operator-notes, "Config Merging") and its types say.
 */

const headersByName: Schema<readonly HttpHeader[]> = {
  ...(listBy(struct<HttpHeader>({ name: requiredText, value: text }), 'name') as ListSchema),
  removesWithout: 'value',
};

const resource = struct<Resource>({
  compression: text,
  httpHeaders: since(1, headersByName),
  source: text,
  verification: struct({ hash: text }),
});
const resources = listBy(resource, 'source');

const ignition = struct<IgnitionSection>({
  config: struct({ merge: resources, replace: resource }),
  proxy: since(1, struct({ httpProxy: text, httpsProxy: text, noProxy: textSet })),
  security: struct({ tls: struct({ certificateAuthorities: resources }) }),
  timeouts: struct({ httpResponseHeaders: integer, httpTotal: integer }),
  version: requiredText,
});

const group = struct<PasswdGroup>({
  gid: integer,
  name: requiredText,
  passwordHash: text,
  shouldExist: since(2, flag),
  system: flag,
});

const user = struct<PasswdUser>({
  gecos: text,
  groups: textSet,
  homeDir: text,
  name: requiredText,
  noCreateHome: flag,
  noLogInit: flag,
  noUserGroup: flag,
  passwordHash: text,
  primaryGroup: text,
  sshAuthorizedKeys: textSet,
  shell: text,
  shouldExist: since(2, flag),
  system: flag,
  uid: integer,
});

const owner = struct<IgnitionOwner>({ id: integer, name: text });
const pathEntry = { group: owner, overwrite: flag, path: requiredText, user: owner };
const file = struct<IgnitionFile>({
  ...pathEntry,
  append: appended(resource),
  contents: resource,
  mode: integer,
});
const directory = struct<IgnitionDirectory>({ ...pathEntry, mode: integer });
const link = struct<IgnitionLink>({ ...pathEntry, hard: flag, target: text });

const partition = struct<Partition>({
  guid: text,
  label: text,
  number: integer,
  resize: since(2, flag),
  shouldExist: flag,
  sizeMiB: integer,
  startMiB: integer,
  typeGuid: text,
  wipePartitionEntry: flag,
});
const disk = struct<Disk>({
  device: requiredText,
  partitions: listBy(partition, 'number', 'label'),
  wipeTable: flag,
});
const filesystem = struct<Filesystem>({
  device: requiredText,
  format: text,
  label: text,
  mountOptions: since(1, appended(text)),
  options: appended(text),
  path: text,
  uuid: text,
  wipeFilesystem: flag,
});
const tang = struct<Tang>({ advertisement: since(4, text), thumbprint: text, url: requiredText });
const clevis = struct<Clevis>({
  custom: struct({ config: text, needsNetwork: flag, pin: text }),
  tang: listBy(tang, 'url'),
  threshold: integer,
  tpm2: flag,
});
const luks = struct<Luks>({
  cex: since(5, struct({ enabled: flag })),
  clevis,
  device: text,
  discard: since(4, flag),
  keyFile: resource,
  label: text,
  name: requiredText,
  openOptions: since(4, textSet),
  options: appended(text),
  uuid: text,
  wipeVolume: flag,
});
const raid = struct<Raid>({
  devices: textSet,
  level: text,
  name: requiredText,
  options: appended(text),
  spares: integer,
});

const storage = struct<Storage>(
  {
    directories: listBy(directory, 'path'),
    disks: listBy(disk, 'device'),
    files: listBy(file, 'path'),
    filesystems: listBy(filesystem, 'device'),
    links: listBy(link, 'path'),
    luks: since(2, listBy(luks, 'name')),
    raid: listBy(raid, 'name'),
  },
  ['directories', 'files', 'links'],
);

const unit = struct<Unit>({
  contents: text,
  dropins: listBy(struct<Dropin>({ contents: text, name: requiredText }), 'name'),
  enabled: flag,
  mask: flag,
  name: requiredText,
});

export const ignition3 = struct<IgnitionConfig>({
  ignition,
  kernelArguments: since(
    3,
    struct<IgnitionKernelArguments>({ shouldExist: textSet, shouldNotExist: textSet }, [
      'shouldExist',
      'shouldNotExist',
    ]),
  ),
  passwd: struct<Passwd>({ groups: listBy(group, 'name'), users: listBy(user, 'name') }),
  storage,
  systemd: struct<Systemd>({ units: listBy(unit, 'name') }),
});
