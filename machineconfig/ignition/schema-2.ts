import {
  appended,
  flag,
  integer,
  requiredText,
  type Schema,
  since,
  struct,
  type TypeOf,
  text,
} from './schema.ts';

/**
 * Ignition 2.0 to 2.2 (https://coreos.github.io/ignition/configuration-v2_2/), as far as MCO can translate it. Lists
 * have no identity here: duplicates are allowed, and translating settles them.
 */

const resource = struct({
  compression: text,
  source: text,
  verification: struct({ hash: text }),
});
export type Spec2Resource = TypeOf<typeof resource>;

const owner = struct({ id: integer, name: text });
const pathEntry = {
  filesystem: requiredText,
  group: owner,
  overwrite: since(2, flag),
  path: requiredText,
  user: owner,
};
const file = struct({ ...pathEntry, append: since(2, flag), contents: resource, mode: integer });
export type Spec2File = TypeOf<typeof file>;
export type Spec2PathEntry = Pick<Spec2File, keyof typeof pathEntry>;

const group = struct({
  gid: integer,
  name: requiredText,
  passwordHash: text,
  system: flag,
});
const user = struct({
  gecos: since(1, text),
  groups: since(1, appended(text)),
  homeDir: since(1, text),
  name: requiredText,
  noCreateHome: since(1, flag),
  noLogInit: since(1, flag),
  noUserGroup: since(1, flag),
  passwordHash: text,
  primaryGroup: since(1, text),
  sshAuthorizedKeys: appended(text),
  shell: since(1, text),
  system: since(1, flag),
  uid: since(1, integer),
});
export type Spec2User = TypeOf<typeof user>;

const storage = struct({
  directories: since(1, appended(struct({ ...pathEntry, mode: integer }))),
  disks: appended(
    struct({
      device: requiredText,
      partitions: appended(
        struct({ guid: text, label: text, number: integer, size: integer, start: integer, typeGuid: text }),
      ),
      wipeTable: flag,
    }),
  ),
  files: appended(file),
  filesystems: appended(struct({ name: text })),
  links: since(1, appended(struct({ ...pathEntry, hard: flag, target: text }))),
  raid: appended(
    struct({
      devices: appended(text),
      level: text,
      name: requiredText,
      options: since(2, appended(text)),
      spares: integer,
    }),
  ),
});

const unit = struct({
  contents: text,
  dropins: appended(struct({ contents: text, name: requiredText })),
  enable: flag,
  enabled: since(1, flag),
  mask: flag,
  name: requiredText,
});
export type Spec2Unit = TypeOf<typeof unit>;

const ignition = struct({
  config: struct({ append: appended(resource), replace: resource }),
  security: since(2, struct({ tls: struct({ certificateAuthorities: appended(resource) }) })),
  timeouts: since(1, struct({ httpResponseHeaders: integer, httpTotal: integer })),
  version: requiredText,
});
const config = struct({
  ignition,
  networkd: struct({ units: appended(struct({ name: text })) }),
  passwd: struct({ groups: appended(group), users: appended(user) }),
  storage,
  systemd: struct({ units: appended(unit) }),
});

/** No config is read whose version is not known. */
export type Spec2Config = TypeOf<typeof config> & { readonly ignition: TypeOf<typeof ignition> };
export const ignition2 = config as Schema<Spec2Config>;
