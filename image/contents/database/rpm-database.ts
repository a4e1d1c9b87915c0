import type { DatabaseSync } from 'node:sqlite';
import { DatabaseError, type Package, PackageList } from '../package.ts';
import { parseRpmHeader } from './rpm-header.ts';

/**
 * The table as RPM creates it (lib/backend/sqlite.c). Parentheses in parentheses would be an expression, which SQLite
 * would evaluate.
 */
const PACKAGES_TABLE = /^CREATE TABLE '?Packages'? \([^()]*\)$/;

/** Of a database (fileformat2, 1.3). */
const HEADER_BYTES = 100;

/**
 * Reads an RPM database in SQLite's format. SQLite gets the bytes in memory and may only read the one table: the author
 * of the image chose the bytes, and a view or a generated column in them would be a program
 * (https://www.sqlite.org/security.html).
 *
 * @param bytes are changed.
 * @throws DatabaseError for anything but such a database.
 */
export function readRpmDatabase(bytes: Uint8Array): readonly Package[] {
  if (bytes.length < HEADER_BYTES) throw new DatabaseError('is cut off');
  // Loaded where there is such a database: every process has this file, and few ever read one.
  const { constants, DatabaseSync } = process.getBuiltinModule('node:sqlite');
  // A database in memory can't have a write-ahead log; the file has all that was checkpointed (fileformat2, 1.3.3).
  for (const at of [18, 19]) bytes[at] = 1;
  const database = new DatabaseSync(':memory:', { limits: { length: bytes.length, column: 16 } });
  try {
    database.deserialize(bytes);
    database.setAuthorizer((action, table) =>
      action === constants.SQLITE_SELECT ||
      (action === constants.SQLITE_READ && (table === 'Packages' || table === 'sqlite_master'))
        ? constants.SQLITE_OK
        : constants.SQLITE_DENY,
    );
    return packagesIn(database, bytes.length);
  } catch (cause) {
    if (cause instanceof DatabaseError) throw cause;
    throw new DatabaseError(
      `can't be read: ${cause instanceof Error ? cause.message : 'SQLite refuses it'}`,
      {
        cause,
      },
    );
  } finally {
    database.close();
  }
}

/** @param size bytes of the database. @throws DatabaseError; what SQLite throws. */
function packagesIn(database: DatabaseSync, size: number): readonly Package[] {
  const schema = database.prepare('SELECT type, sql FROM sqlite_master WHERE name = ?').get('Packages');
  if (schema?.['type'] !== 'table' || !PACKAGES_TABLE.test(String(schema['sql']))) {
    throw new DatabaseError('has no table Packages as RPM creates it');
  }
  const list = new PackageList();
  // Rows of a broken file can share their pages; those of a whole one have no more bytes than it.
  let left = size;
  for (const { blob } of database.prepare('SELECT blob FROM Packages').iterate()) {
    if (!(blob instanceof Uint8Array)) throw new DatabaseError('has a package that is no header');
    left -= blob.length;
    if (left < 0) throw new DatabaseError('has more packages than it has room for');
    list.add(parseRpmHeader(blob));
  }
  return list.sorted();
}
