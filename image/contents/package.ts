import { by } from '../../api/order.ts';
/** Whose database a package is in; each has its own order of versions. */
export const PACKAGE_FORMATS = ['dpkg', 'rpm', 'apk'] as const;
export type PackageFormat = (typeof PACKAGE_FORMATS)[number];

/** A package that is installed in an image. */
export interface Package {
  readonly name: string;
  /** As the package manager prints it: with epoch, revision or release, where it has them. */
  readonly version: string;
  /** Empty where the database names none, as for keys in an RPM database. */
  readonly architecture: string;
  readonly vendor?: string | undefined;
}

/** A database that is not what its place and name promise. The message is a clause without a subject. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
}

/** Packages of one database; distributions have some ten thousand in all. */
export const MOST_PACKAGES = 50_000;
/** Characters of a name or version; the longest of Debian's and Fedora's have some hundred. */
const LONGEST_FIELD = 1024;

/**
 * Collects the packages of one database.
 *
 * @throws DatabaseError for more packages, or longer fields, than any distribution has.
 */
export class PackageList {
  readonly #packages: Package[] = [];

  add(found: Package): void {
    if (this.#packages.length === MOST_PACKAGES) {
      throw new DatabaseError(`has more than ${MOST_PACKAGES} packages`);
    }
    const { name, version, architecture, vendor } = found;
    this.#packages.push({
      name: own(name),
      version: own(version),
      architecture: own(architecture),
      ...(vendor === undefined ? {} : { vendor: own(vendor) }),
    });
  }

  /** @returns the packages by name, version and architecture. */
  sorted(): readonly Package[] {
    return this.#packages.toSorted(
      by(
        ({ name }) => name,
        ({ version }) => version,
        ({ architecture }) => architecture,
      ),
    );
  }
}

/** A part of a text keeps all of it in memory (V8's sliced strings); a copy doesn't. */
function own(text: string): string {
  if (text.length > LONGEST_FIELD) throw new DatabaseError(`has a field of ${text.length} characters`);
  return Buffer.from(text).toString();
}
