_guards() {
	# The line itself: bash would cut it at = and :, too, and COMPREPLY replaces only what is behind the last of them.
	local line=${COMP_LINE:0:COMP_POINT} current glued words IFS=$' \t\n'
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	current=${words[${#words[@]} - 1]}
	glued=${current%"${current##*[=:]}"}
	IFS=$'\n'
	COMPREPLY=($("$1" complete -- "${words[@]:1}" 2>/dev/null | cut -f 1))
	COMPREPLY=("${COMPREPLY[@]#"$glued"}")
}
complete -o default -F _guards guards
