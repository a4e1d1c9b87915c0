import { useState } from 'preact/hooks';
import { keyIn } from '../route.ts';

/** A form for a token of the cluster, if the server requires one. */
export function SignIn({
  why,
  onToken,
}: {
  readonly why: string;
  readonly onToken: (token: string) => void;
}) {
  const [token, setToken] = useState('');
  const submit = (event: Event) => {
    event.preventDefault();
    if (token.trim() !== '') onToken(token.trim());
  };
  return (
    <main class="sign-in">
      <h1>Shale</h1>
      <p role="alert">{why}</p>
      <form onSubmit={submit}>
        <label for="token">Token of a user or service account</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
        <button type="submit">Sign in</button>
      </form>
      <p class="quiet">
        Create one with <code>kubectl create token NAME</code>. It stays in this tab and is sent only to this
        server.
      </p>
    </main>
  );
}

/**
 * The token to read data with. It is stored for this tab and origin only (sessionStorage): a cookie would be sent to
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
 * Exchanges the key in the URL's fragment, which browsers don't send to servers, for a token, and removes it from the
 * URL and so from the history.
 *
 * @throws {Error} with the server's message when the key is not valid.
 */
export async function redeemKey(): Promise<void> {
  const key = keyIn(location.hash);
  if (key === undefined) return;
  history.replaceState(null, '', location.pathname + location.search);
  const response = await fetch('./session', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  const { token } = (await response.json()) as { readonly token: string };
  storeToken(token);
}
