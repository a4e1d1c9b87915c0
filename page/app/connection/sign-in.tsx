import { useState } from 'preact/hooks';

/** Asks for a token of the cluster, where the server wants one. */
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
