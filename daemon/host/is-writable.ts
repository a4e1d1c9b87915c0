import { access, constants } from 'node:fs/promises';

/** @returns whether a directory's mount lets it be written to. @throws what else keeps it from being looked at. */
export async function isWritable(directory: string): Promise<boolean> {
  try {
    await access(directory, constants.W_OK);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EROFS') return false;
    throw error;
  }
}
