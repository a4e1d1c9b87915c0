import { errorMessage } from '../../../api/error-message.ts';
import { storedToken } from './sign-in.tsx';

/** What the server said to a request. */
export type Answer<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: string };

/** ms; the server has its own deadline, which is shorter. */
const DEADLINE_MS = 30_000;

/** @returns JSON of the server, or why there is none. */
export async function ask<T>(url: string, signal: AbortSignal): Promise<Answer<T>> {
  const token = storedToken();
  try {
    const response = await fetch(url, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      cache: 'no-store',
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
    });
    if (!response.ok) return { ok: false, why: (await response.text()).trim() };
    return { ok: true, value: (await response.json()) as T };
  } catch (error) {
    return { ok: false, why: errorMessage(error) };
  }
}
