/**
 * The typed form of an Ignition config of spec 3.5.0, the one form that everything after parsing works on. Field by
 * field as in https://coreos.github.io/ignition/configuration-v3_5/; all other accepted versions are translated to it.
 * An absent field is `undefined`, never null; a required string that the author forgot is '' and a reported problem.
 */
export interface IgnitionConfig {
  readonly ignition: IgnitionSection;
  readonly kernelArguments?: IgnitionKernelArguments;
  readonly passwd?: Passwd;
  readonly storage?: Storage;
  readonly systemd?: Systemd;
}

export interface IgnitionSection {
  readonly config?: { readonly merge?: readonly Resource[]; readonly replace?: Resource };
  readonly proxy?: {
    readonly httpProxy?: string;
    readonly httpsProxy?: string;
    readonly noProxy?: readonly string[];
  };
  readonly security?: { readonly tls?: { readonly certificateAuthorities?: readonly Resource[] } };
  /** Seconds. */
  readonly timeouts?: { readonly httpResponseHeaders?: number; readonly httpTotal?: number };
  readonly version: string;
}

export interface IgnitionKernelArguments {
  readonly shouldExist?: readonly string[];
  readonly shouldNotExist?: readonly string[];
}

export interface Resource {
  readonly compression?: string;
  readonly httpHeaders?: readonly HttpHeader[];
  readonly source?: string;
  readonly verification?: { readonly hash?: string };
}

export interface HttpHeader {
  readonly name: string;
  /** Without a value the header of that name is removed on merging. */
  readonly value?: string;
}

export interface Passwd {
  readonly groups?: readonly PasswdGroup[];
  readonly users?: readonly PasswdUser[];
}

export interface PasswdGroup {
  readonly gid?: number;
  readonly name: string;
  readonly passwordHash?: string;
  readonly shouldExist?: boolean;
  readonly system?: boolean;
}

export interface PasswdUser {
  readonly gecos?: string;
  readonly groups?: readonly string[];
  readonly homeDir?: string;
  readonly name: string;
  readonly noCreateHome?: boolean;
  readonly noLogInit?: boolean;
  readonly noUserGroup?: boolean;
  readonly passwordHash?: string;
  readonly primaryGroup?: string;
  readonly sshAuthorizedKeys?: readonly string[];
  readonly shell?: string;
  readonly shouldExist?: boolean;
  readonly system?: boolean;
  readonly uid?: number;
}

export interface Storage {
  readonly directories?: readonly IgnitionDirectory[];
  readonly disks?: readonly Disk[];
  readonly files?: readonly IgnitionFile[];
  readonly filesystems?: readonly Filesystem[];
  readonly links?: readonly IgnitionLink[];
  readonly luks?: readonly Luks[];
  readonly raid?: readonly Raid[];
}

/** The common fields of files, directories and links; the Ignition spec calls them nodes. */
export interface PathEntry {
  readonly group?: IgnitionOwner;
  readonly overwrite?: boolean;
  readonly path: string;
  readonly user?: IgnitionOwner;
}

export interface IgnitionOwner {
  readonly id?: number;
  readonly name?: string;
}

export interface IgnitionFile extends PathEntry {
  readonly append?: readonly Resource[];
  readonly contents?: Resource;
  readonly mode?: number;
}

export interface IgnitionDirectory extends PathEntry {
  readonly mode?: number;
}

export interface IgnitionLink extends PathEntry {
  readonly hard?: boolean;
  readonly target?: string;
}

export interface Disk {
  readonly device: string;
  readonly partitions?: readonly Partition[];
  readonly wipeTable?: boolean;
}

export interface Partition {
  readonly guid?: string;
  readonly label?: string;
  /** 0 or absent: the next free one. */
  readonly number?: number;
  readonly resize?: boolean;
  readonly shouldExist?: boolean;
  readonly sizeMiB?: number;
  readonly startMiB?: number;
  readonly typeGuid?: string;
  readonly wipePartitionEntry?: boolean;
}

export interface Filesystem {
  readonly device: string;
  readonly format?: string;
  readonly label?: string;
  readonly mountOptions?: readonly string[];
  readonly options?: readonly string[];
  readonly path?: string;
  readonly uuid?: string;
  readonly wipeFilesystem?: boolean;
}

export interface Luks {
  readonly cex?: { readonly enabled?: boolean };
  readonly clevis?: Clevis;
  readonly device?: string;
  readonly discard?: boolean;
  readonly keyFile?: Resource;
  readonly label?: string;
  readonly name: string;
  readonly openOptions?: readonly string[];
  readonly options?: readonly string[];
  readonly uuid?: string;
  readonly wipeVolume?: boolean;
}

export interface Clevis {
  readonly custom?: { readonly config?: string; readonly needsNetwork?: boolean; readonly pin?: string };
  readonly tang?: readonly Tang[];
  readonly threshold?: number;
  readonly tpm2?: boolean;
}

export interface Tang {
  readonly advertisement?: string;
  readonly thumbprint?: string;
  readonly url: string;
}

export interface Raid {
  readonly devices?: readonly string[];
  readonly level?: string;
  readonly name: string;
  readonly options?: readonly string[];
  readonly spares?: number;
}

export interface Systemd {
  readonly units?: readonly Unit[];
}

export interface Unit {
  readonly contents?: string;
  readonly dropins?: readonly Dropin[];
  readonly enabled?: boolean;
  readonly mask?: boolean;
  readonly name: string;
}

export interface Dropin {
  readonly contents?: string;
  readonly name: string;
}
