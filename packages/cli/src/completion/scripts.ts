/**
 * What each shell has to be told once. The scripts know nothing of the commands: they ask `holdfast complete`, whose first line is the kind of
 * what can stand there, its second the word that is completed, and the others whole words.
 */

const bash = `# holdfast completion for bash: source <(holdfast completion bash)
_holdfast() {
  local -a reply
  mapfile -t reply < <(holdfast complete -- "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  COMPREPLY=()
  case "\${reply[0]}" in
    files) compopt -o default ;;
    command) mapfile -t COMPREPLY < <(compgen -c -- "\${reply[1]}") ;;
    words)
      # Readline takes a word apart at some letters, and replaces its last part alone.
      local word="\${reply[1]}" part="" candidate
      [[ "$COMP_WORDBREAKS" == *:* && "$word" == *:* ]] && part="\${word%"\${word##*:}"}"
      [[ "$COMP_WORDBREAKS" == *=* && "$word" == *=* && -z "$part" ]] && part="\${word%"\${word##*=}"}"
      for candidate in "\${reply[@]:2}"; do
        candidate="\${candidate#"$part"}"
        [[ "$candidate" == *[!A-Za-z0-9_@%+=:,./-]* ]] && printf -v candidate %q "$candidate"
        COMPREPLY+=("$candidate")
      done
      ;;
  esac
}
complete -F _holdfast holdfast
`;

const zsh = `#compdef holdfast
# holdfast completion for zsh: source <(holdfast completion zsh), after compinit
_holdfast() {
  local -a reply
  reply=("\${(@f)$(holdfast complete -- "\${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
  case "\${reply[1]}" in
    files) _files ;;
    command) _command_names -e ;;
    words) compadd -- "\${(@)reply[3,-1]}" ;;
  esac
}
compdef _holdfast holdfast
`;

const fish = `# holdfast completion for fish: holdfast completion fish | source
function __holdfast_complete
    set -l reply (holdfast complete -- (commandline -cp) 2>/dev/null)
    switch "$reply[1]"
        case files
            __fish_complete_path (commandline -ct)
        case command
            __fish_complete_command
        case words
            string join \\n -- $reply[3..]
    end
end
complete -c holdfast -f -a '(__holdfast_complete)'
`;

export const completionScripts: Readonly<Record<string, string>> = { bash, zsh, fish };
