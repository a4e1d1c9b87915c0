import { isAlreadyExists } from '../cluster/api-client.ts';

/** @returns once an object is created, or exists already. @throws {ApiError} */
export async function unlessExists(created: Promise<unknown>): Promise<void> {
  try {
    await created;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
