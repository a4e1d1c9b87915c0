import type { IgnitionOwner, PasswdGroup, PasswdUser, Raid } from './config.ts';
import { appended, flag, integer, requiredText, type Schema, since, struct, text } from './schema.ts';

/**
 * Ignition 2.0 to 2.2 (https://coreos.github.io/ignition/configuration-v2_2/), as far as MCO can translate it. Lists
 * have no identity here: duplicates are allowed, and translating settles them.
 */
export interface Spec2Config {
  readonly ignition: {
    readonly config?: { readonly append?: readonly Spec2Resource[]; readonly replace?: Spec2Resource };
    readonly security?: { readonly tls?: { readonly certificateAuthorities?: readonly Spec2Resource[] } };
    readonly timeouts?: { readonly httpResponseHeaders?: number; readonly httpTotal?: number };
    readonly version: string;
  };
  readonly networkd?: { readonly units?: readonly { readonly name?: string }[] };
  readonly passwd?: {
    readonly groups?: readonly Omit<PasswdGroup, 'shouldExist'>[];
    readonly users?: readonly Spec2User[];
  };
  readonly storage?: Spec2Storage;
  readonly systemd?: { readonly units?: readonly Spec2Unit[] };
}

export interface Spec2Resource {
  readonly compression?: string;
  readonly source?: string;
  readonly verification?: { readonly hash?: string };
}

export interface Spec2PathEntry {
  readonly filesystem: string;
  readonly group?: IgnitionOwner;
  readonly overwrite?: boolean;
  readonly path: string;
  readonly user?: IgnitionOwner;
}

export interface Spec2File extends Spec2PathEntry {
  readonly append?: boolean;
  readonly contents?: Spec2Resource;
  readonly mode?: number;
}

interface Spec2Storage {
  readonly directories?: readonly (Spec2PathEntry & { readonly mode?: number })[];
  readonly disks?: readonly Spec2Disk[];
  readonly files?: readonly Spec2File[];
  readonly filesystems?: readonly { readonly name?: string }[];
  readonly links?: readonly (Spec2PathEntry & { readonly hard?: boolean; readonly target?: string })[];
  readonly raid?: readonly Raid[];
}

interface Spec2Disk {
  readonly device: string;
  readonly partitions?: readonly {
    readonly guid?: string;
    readonly label?: string;
    readonly number?: number;
    /** Sectors. */
    readonly size?: number;
    readonly start?: number;
    readonly typeGuid?: string;
  }[];
  readonly wipeTable?: boolean;
}

export interface Spec2Unit {
  readonly contents?: string;
  readonly dropins?: readonly { readonly contents?: string; readonly name: string }[];
  readonly enable?: boolean;
  readonly enabled?: boolean;
  readonly mask?: boolean;
  readonly name: string;
}

export type Spec2User = Omit<PasswdUser, 'shouldExist'> & { readonly create?: unknown };

const resource = struct<Spec2Resource>({
  compression: text,
  source: text,
  verification: struct({ hash: text }),
});
const owner = struct<IgnitionOwner>({ id: integer, name: text });
const pathEntry = {
  filesystem: requiredText,
  group: owner,
  overwrite: since(2, flag),
  path: requiredText,
  user: owner,
};
const group = struct<Omit<PasswdGroup, 'shouldExist'>>({
  gid: integer,
  name: requiredText,
  passwordHash: text,
  system: flag,
});
const user = struct<Omit<Spec2User, 'create'>>({
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
}) as Schema<Spec2User>;

const storage = struct<Spec2Storage>({
  directories: since(1, appended(struct({ ...pathEntry, mode: integer }))),
  disks: appended(
    struct<Spec2Disk>({
      device: requiredText,
      partitions: appended(
        struct({ guid: text, label: text, number: integer, size: integer, start: integer, typeGuid: text }),
      ),
      wipeTable: flag,
    }),
  ),
  files: appended(
    struct<Spec2File>({ ...pathEntry, append: since(2, flag), contents: resource, mode: integer }),
  ),
  filesystems: appended(struct({ name: text })),
  links: since(1, appended(struct({ ...pathEntry, hard: flag, target: text }))),
  raid: appended(
    struct<Raid>({
      devices: appended(text),
      level: text,
      name: requiredText,
      options: since(2, appended(text)),
      spares: integer,
    }),
  ),
});

const unit = struct<Spec2Unit>({
  contents: text,
  dropins: appended(struct({ contents: text, name: requiredText })),
  enable: flag,
  enabled: since(1, flag),
  mask: flag,
  name: requiredText,
});

export const ignition2 = struct<Spec2Config>({
  ignition: struct({
    config: struct({ append: appended(resource), replace: resource }),
    security: since(2, struct({ tls: struct({ certificateAuthorities: appended(resource) }) })),
    timeouts: since(1, struct({ httpResponseHeaders: integer, httpTotal: integer })),
    version: requiredText,
  }),
  networkd: struct({ units: appended(struct({ name: text })) }),
  passwd: struct({ groups: appended(group), users: appended(user) }),
  storage,
  systemd: struct({ units: appended(unit) }),
});
