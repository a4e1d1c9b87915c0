import { isConflict } from './api-client.ts';

/** Writers of one object are few; more conflicts in a row than this mean that somebody fights over it. */
const ATTEMPTS = 6;

/**
 * Writes an object until nobody else wrote in between.
 *
 * @param object as it was last seen.
 * @param write makes the change on the object it is given, and is refused where that is no longer the present one.
 * @param read the object as it is now; asked after a conflict.
 * @throws what `write` and `read` throw; the last conflict where they don't end.
 */
export async function retryOnConflict<T, R>(
  object: T,
  write: (object: T) => Promise<R>,
  read: () => Promise<T>,
): Promise<R> {
  let current = object;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write(current);
    } catch (error) {
      if (!isConflict(error) || attempt === ATTEMPTS) throw error;
      current = await read();
    }
  }
}
