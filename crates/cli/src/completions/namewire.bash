# Bash completion of namewire, made by `namewire completions bash`.

_namewire() {
    local program=${COMP_WORDS[0]} word glue= i
    local -a words=() replies=()
    [[ -n $(type -P -- "$program") ]] || program=namewire
    # Bash takes "udp4://host" and "--router=lab" for several words. They are one here.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $i -gt 1 && (-n $glue || $word =~ ^[:=]+$) ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        [[ $word =~ ^[:=]+$ ]] && glue=1 || glue=
    done
    word=${words[${#words[@]} - 1]}
    mapfile -t replies < <("$program" complete --shell bash --index $((${#words[@]} - 1)) -- "${words[@]}" 2>/dev/null)
    # Bash replaces only what follows the last of these characters.
    local before=${word%"${word##*[:=]}"}
    if [[ -n $before && $COMP_WORDBREAKS == *"${before: -1}"* ]]; then
        replies=("${replies[@]#"$before"}")
    fi
    COMPREPLY=()
    for word in "${replies[@]}"; do
        [[ $word =~ ^[A-Za-z0-9/:=@%+,._~\[\]-]*$ ]] || printf -v word %q "$word"
        COMPREPLY+=("$word")
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}

complete -F _namewire -o nosort namewire 2>/dev/null || complete -F _namewire namewire
