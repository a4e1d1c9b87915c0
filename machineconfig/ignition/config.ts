import {
  appended,
  flag,
  integer,
  listBy,
  requiredText,
  type Schema,
  since,
  struct,
  type TypeOf,
  text,
  textSet,
} from './schema.ts';

/**
 * Ignition 3.0 to 3.5 (https://coreos.github.io/ignition/configuration-v3_5/), the one form that everything after
 * parsing works on: all other accepted versions are translated to it. Every version only adds fields, so one schema
 * reads them all; which list has which identity and which are appended is what the spec's merging rules
 * (docs/operator-notes, "Config Merging") and its types say. An absent field is `undefined`, never null; a required
 * string that the author forgot is '' and a reported problem.
 */

const headersByName = {
  ...listBy(struct({ name: requiredText, value: text }), 'name'),
  /** Without a value the header of that name is removed on merging. */
  removesWithout: 'value',
};

const resource = struct({
  compression: text,
  httpHeaders: since(1, headersByName),
  source: text,
  verification: struct({ hash: text }),
});
export type Resource = TypeOf<typeof resource>;
const resources = listBy(resource, 'source');

const ignition = struct({
  config: struct({ merge: resources, replace: resource }),
  proxy: since(1, struct({ httpProxy: text, httpsProxy: text, noProxy: textSet })),
  security: struct({ tls: struct({ certificateAuthorities: resources }) }),
  /** Seconds. */
  timeouts: struct({ httpResponseHeaders: integer, httpTotal: integer }),
  version: requiredText,
});
export type IgnitionSection = TypeOf<typeof ignition>;

const group = struct({
  gid: integer,
  name: requiredText,
  passwordHash: text,
  shouldExist: since(2, flag),
  system: flag,
});

const user = struct({
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
export type PasswdUser = TypeOf<typeof user>;

const owner = struct({ id: integer, name: text });
export type IgnitionOwner = TypeOf<typeof owner>;
/** The common fields of files, directories and links; the Ignition spec calls them nodes. */
const pathEntry = { group: owner, overwrite: flag, path: requiredText, user: owner };
const file = struct({ ...pathEntry, append: appended(resource), contents: resource, mode: integer });
export type IgnitionFile = TypeOf<typeof file>;
const directory = struct({ ...pathEntry, mode: integer });
export type IgnitionDirectory = TypeOf<typeof directory>;
const link = struct({ ...pathEntry, hard: flag, target: text });
export type IgnitionLink = TypeOf<typeof link>;
export type PathEntry = Pick<IgnitionFile, keyof typeof pathEntry>;

const partition = struct({
  guid: text,
  label: text,
  /** 0 or absent: the next free one. */
  number: integer,
  resize: since(2, flag),
  shouldExist: flag,
  sizeMiB: integer,
  startMiB: integer,
  typeGuid: text,
  wipePartitionEntry: flag,
});
export type Partition = TypeOf<typeof partition>;
const disk = struct({
  device: requiredText,
  partitions: listBy(partition, 'number', 'label'),
  wipeTable: flag,
});
export type Disk = TypeOf<typeof disk>;
const filesystem = struct({
  device: requiredText,
  format: text,
  label: text,
  mountOptions: since(1, appended(text)),
  options: appended(text),
  path: text,
  uuid: text,
  wipeFilesystem: flag,
});
export type Filesystem = TypeOf<typeof filesystem>;
const tang = struct({ advertisement: since(4, text), thumbprint: text, url: requiredText });
export type Tang = TypeOf<typeof tang>;
const clevis = struct({
  custom: struct({ config: text, needsNetwork: flag, pin: text }),
  tang: listBy(tang, 'url'),
  threshold: integer,
  tpm2: flag,
});
const luks = struct({
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
export type Luks = TypeOf<typeof luks>;
const raid = struct({
  devices: textSet,
  level: text,
  name: requiredText,
  options: appended(text),
  spares: integer,
});
export type Raid = TypeOf<typeof raid>;

const storage = struct(
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
export type Storage = TypeOf<typeof storage>;

const dropin = struct({ contents: text, name: requiredText });
export type Dropin = TypeOf<typeof dropin>;
const unit = struct({
  contents: text,
  dropins: listBy(dropin, 'name'),
  enabled: flag,
  mask: flag,
  name: requiredText,
});
export type Unit = TypeOf<typeof unit>;

const passwd = struct({ groups: listBy(group, 'name'), users: listBy(user, 'name') });
export type Passwd = TypeOf<typeof passwd>;

const config = struct({
  ignition,
  kernelArguments: since(
    3,
    struct({ shouldExist: textSet, shouldNotExist: textSet }, ['shouldExist', 'shouldNotExist']),
  ),
  passwd,
  storage,
  systemd: struct({ units: listBy(unit, 'name') }),
});

/** No config is read whose version is not known. */
export type IgnitionConfig = TypeOf<typeof config> & { readonly ignition: IgnitionSection };
export const ignition3 = config as Schema<IgnitionConfig>;
