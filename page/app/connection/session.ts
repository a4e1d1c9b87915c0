/**
 * The token that data is read with. It is kept for this tab and this origin alone (sessionStorage): a cookie would go to
 * every port of the machine.
 */
const TOKEN = 'shale-token';

export function storedToken(): string | undefined {
  return sessionStorage.getItem(TOKEN) ?? undefined;
}

export function storeToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN);
}

/**
 * Trades the key of the address (`#…`, which browsers send to nobody) for a token, and takes it out of the address, so that
 * history doesn't keep it.
 *
 * @throws Error with the server's words when the key opens nothing.
 */
export async function redeemKey(): Promise<void> {
  const key = location.hash.slice(1);
  if (key === '') return;
  history.replaceState(null, '', location.pathname + location.search);
  const response = await fetch('./session', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  const { token } = (await response.json()) as { readonly token: string };
  storeToken(token);
}
